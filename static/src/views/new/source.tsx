import { Link } from "wouter-preact";
import { routes } from "../../browser/routes";
import { DropZone } from "../../uploads/drop-zone";

/** File selection. `fromLake`: whether a file in the lake can be chosen instead. */
export function SourceStep({ fromLake, onFiles }: { fromLake: boolean; onFiles: (files: File[]) => void }) {
  return (
    <DropZone
      large
      button="Choose files"
      also={
        fromLake && (
          <Link class="button" href={routes.lake()}>
            Open the lake
          </Link>
        )
      }
      onFiles={onFiles}
    >
      TSV and other delimited text work too, plain or compressed as .gz or .zst. Files with the same columns become one
      table. Nothing is created until you confirm.
      {fromLake && " If the file is in the lake already, open it there and choose New pipeline from this file."}
    </DropZone>
  );
}
