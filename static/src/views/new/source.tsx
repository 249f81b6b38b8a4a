import { Link } from "wouter-preact";
import { routes } from "../../browser/routes";
import { DropZone } from "../../uploads/drop-zone";

/** File selection. */
export function SourceStep({ onFiles }: { onFiles: (files: File[]) => void }) {
  return (
    <DropZone
      large
      button="Choose files"
      also={
        <Link class="button" href={routes.lake()}>
          Choose from the lake
        </Link>
      }
      onFiles={onFiles}
    >
      TSV and other delimited text work too, plain or compressed as .gz or .zst. Files with the same columns become one
      table. Nothing is created until you confirm.
    </DropZone>
  );
}
