import { Link } from "wouter-preact";
import { places } from "../../browser/places";
import { DropZone } from "../../uploads/drop-zone";

/** The first step: which files. */
export function SourceStep({ onFiles }: { onFiles: (files: File[]) => void }) {
  return (
    <DropZone
      large
      button="Choose files"
      also={
        <Link class="button" href={places.lake()}>
          Take one from the lake
        </Link>
      }
      onFiles={onFiles}
    >
      Also TSV and other delimited text, plain or as .gz or .zst. Files of the same shape make one table. Nothing is
      kept until you confirm.
    </DropZone>
  );
}
