import { useLocation } from "wouter-preact";
import { places } from "../../browser/places";
import { DropZone } from "../../uploads/drop-zone";
import { droppedFiles } from "../../uploads/dropped";

/** Leads to the view that proposes a pipeline. */
export function DropCsv({ large }: { large?: boolean }) {
  const [, go] = useLocation();
  return (
    <DropZone
      large={large}
      button="Choose a CSV"
      onFiles={(files) => {
        droppedFiles.value = files;
        go(places.fromCsv());
      }}
    >
      Its delimiter, columns and types are proposed, with the first rows as they would be typed. Nothing is made before
      you say so.
    </DropZone>
  );
}
