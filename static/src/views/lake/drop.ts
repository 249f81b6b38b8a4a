import { useEffect, useState } from "preact/hooks";
import { toast } from "../../components/toasts";
import { filesOfDrop, hasFiles, type CollectedFiles } from "../../uploads/files";

/** Drop target for the whole page; true while files are dragged over it. */
export function useDrop(onFound: (taken: CollectedFiles) => void): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    // Enter and leave events come for every element.
    let depth = 0;
    const taken = (event: DragEvent) => hasFiles(event.dataTransfer) && !document.querySelector("dialog[open]");
    const enter = (event: DragEvent) => {
      if (!taken(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const hover = (event: DragEvent) => {
      if (taken(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      if (!taken(event) || !event.dataTransfer) return;
      event.preventDefault();
      filesOfDrop(event.dataTransfer).then(onFound, (error: unknown) =>
        toast.failed("Couldn't read the dropped files", error),
      );
    };
    const all = { dragenter: enter, dragleave: leave, dragover: hover, drop };
    for (const [name, run] of Object.entries(all)) document.addEventListener(name, run as EventListener);
    return () => {
      for (const [name, run] of Object.entries(all)) document.removeEventListener(name, run as EventListener);
    };
  }, [onFound]);
  return over;
}
