import { FileUp } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Button } from "../components/button";
import { chosenFiles, type CollectedFiles } from "./files";
import { ACCEPTED } from "./source-names";
import { take } from "./accept";
import { useDropHandler } from "./use-drop";
import "./drop-zone.css";

/** Large way in for CSVs and folders: they may be dropped anywhere on the page, or chosen. */
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
  const chooser = useRef<HTMLInputElement>(null);
  const add = (taken: CollectedFiles) => void take(taken).then((csvs) => csvs.length > 0 && onFiles(csvs));
  useDropHandler("to preview the data", add);
  return (
    <div class={`drop-zone ${large ? "large" : ""}`}>
      <FileUp aria-hidden="true" />
      <h2>Drop CSVs here</h2>
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
          add(chosenFiles(event.currentTarget.files ?? []));
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}
