import { FileUp } from "lucide-preact";
import { useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { Button } from "../../components/button";
import { say } from "../../components/toasts";
import { places } from "../../browser/places";
import { droppedFiles } from "../../uploads/dropped";

const CSV = /\.(csv|tsv|txt)(\.(gz|zst))?$/i;
export const ACCEPTED = ".csv,.csv.gz,.csv.zst,.tsv,.txt,text/csv";

/** The files of a drop that may be CSVs. */
export const csvsOf = (files: readonly File[]): File[] =>
  files.filter((file) => CSV.test(file.name) || file.type === "text/csv");

/** A place to drop CSVs onto, or to choose them; leads to the view that proposes a pipeline. */
export function DropCsv({ large }: { large?: boolean }) {
  const [, go] = useLocation();
  const [over, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const take = (files: File[]) => {
    const csvs = csvsOf(files);
    if (csvs.length === 0) {
      if (files.length > 0)
        say.failed("Nothing was taken", new Error("none of the files is a CSV (.csv, .csv.gz, .csv.zst)"));
      return;
    }
    droppedFiles.value = csvs;
    go(places.fromCsv());
  };
  return (
    <div
      class={`pipelines-drop ${large ? "large" : ""} ${over ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <FileUp aria-hidden="true" />
      <h2>{over ? "Drop it" : "Drop a CSV here"}</h2>
      <p class="secondary">
        Its delimiter, columns and types are proposed, with the first rows as they would be typed. Nothing is made
        before you say so.
      </p>
      <Button look="primary" onClick={() => chooser.current?.click()}>
        Choose a CSV
      </Button>
      <input
        ref={chooser}
        type="file"
        hidden
        multiple
        accept={ACCEPTED}
        aria-label="CSV files"
        onChange={(event) => take([...(event.currentTarget.files ?? [])])}
      />
    </div>
  );
}
