import { useLocation } from "wouter-preact";
import { routes } from "../../browser/routes";
import { DropZone } from "../../uploads/drop-zone";
import { droppedFiles } from "../../uploads/dropped";

/** Opens the wizard with the dropped files. */
export function DropCsv({ large }: { large?: boolean }) {
  const [, go] = useLocation();
  return (
    <DropZone
      large={large}
      button="Choose CSVs"
      onFiles={(files) => {
        droppedFiles.value = files;
        go(routes.fromCsv());
      }}
    >
      One or several: files with the same columns become one table. We&apos;ll detect the delimiter, columns and types
      and show a preview. Nothing is created until you confirm.
    </DropZone>
  );
}
