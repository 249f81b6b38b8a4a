import { FileUp } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { CSV_ENDINGS } from "../api/rules";
import { Button } from "../components/button";
import { toast } from "../components/toasts";
import { counted } from "../format/number";
import { chosenFiles, filesOfDrop, hasFiles, skippedMessage, type CollectedFiles } from "./files";
import { ACCEPTED, isSource } from "./source-names";
import "./drop-zone.css";

/** Files with a CSV extension. */
export const csvsOf = (files: readonly File[]): File[] =>
  files.filter((file) => isSource(file.name) || file.type === "text/csv");

/** Drop zone for CSVs and folders, with a file chooser. */
export function DropZone({
  children,
  button,
  also,
  large,
  onFiles,
}: {
  /** Description. */
  children: ComponentChildren;
  button: string;
  /** Beside the button. */
  also?: ComponentChildren;
  large?: boolean | undefined;
  onFiles: (files: File[]) => void;
}) {
  const [over, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const take = (taken: CollectedFiles) => {
    const files = taken.found.map(({ file }) => file);
    const csvs = csvsOf(files);
    const left = skippedMessage(taken);
    if (left !== undefined) toast.failed("Some files weren't added", new Error(left));
    if (csvs.length > 0) {
      if (csvs.length < files.length) toast.done(`${counted(files.length - csvs.length, "file")} skipped: not a CSV`);
      onFiles(csvs);
    } else if (files.length > 0)
      toast.failed("No files added", new Error(`Lakemill reads CSV files only (${CSV_ENDINGS.join(", ")})`));
  };
  return (
    <div
      class={`drop-zone ${large ? "large" : ""} ${over ? "over" : ""}`}
      onDragOver={(event) => {
        if (!hasFiles(event.dataTransfer)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (!event.dataTransfer) return;
        filesOfDrop(event.dataTransfer).then(take, (error: unknown) =>
          toast.failed("Couldn't read the dropped files", error),
        );
      }}
    >
      <FileUp aria-hidden="true" />
      <h2>{over ? "Drop to upload" : "Drop a CSV here"}</h2>
      <p class="secondary">{children}</p>
      <div class="row wrap">
        <Button variant="primary" onClick={() => chooser.current?.click()}>
          {button}
        </Button>
        {also}
      </div>
      <input
        ref={chooser}
        type="file"
        hidden
        multiple
        accept={ACCEPTED}
        aria-label="CSV files"
        onChange={(event) => {
          take(chosenFiles(event.currentTarget.files ?? []));
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}
