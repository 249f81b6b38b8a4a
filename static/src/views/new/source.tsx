import { FileUp } from "lucide-preact";
import { useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { Button } from "../../components/button";
import { say } from "../../components/toasts";
import { places } from "../../browser/places";
import { chosen, dropped, hasFiles, leftOut, type Taken } from "../../uploads/found";

const KINDS = ".csv,.tsv,.tab,.txt,.psv,.dat,.gz,.zst,text/csv";

/** The first step: which files. */
export function SourceStep({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const take = (taken: Taken) => {
    const left = leftOut(taken);
    if (left !== undefined) say.failed("Not all was taken", new Error(left));
    if (taken.found.length > 0) onFiles(taken.found.map(({ file }) => file));
  };
  return (
    <div
      class={over ? "new-drop over" : "new-drop"}
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
        dropped(event.dataTransfer).then(take, (error: unknown) => say.failed("What was dropped can't be read", error));
      }}
    >
      <FileUp />
      <h2>Drop a CSV here</h2>
      <p class="secondary">
        Also TSV and other delimited text, plain or as .gz or .zst. Files of the same shape make one table. Nothing is
        kept until you confirm.
      </p>
      <div class="row wrap">
        <Button look="primary" onClick={() => input.current?.click()}>
          Choose files
        </Button>
        <Link class="button" href={places.lake()}>
          Take one from the lake
        </Link>
      </div>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept={KINDS}
        aria-label="CSV files"
        onChange={(event) => {
          take(chosen(event.currentTarget.files ?? []));
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}
