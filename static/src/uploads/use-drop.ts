/** Files dropped anywhere on the page. The taker registered last gets them: a view's own before the page's. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { toast } from "../components/toasts";
import { filesOfDrop, hasFiles, type CollectedFiles } from "./files";

interface DropHandler {
  /** Where the files go: "to orders". */
  words: string;
  take: (found: CollectedFiles) => void;
}

const dropTargets = signal<DropHandler[]>([]);

/** Where files that are dragged over the page would go; undefined while none are. */
export const dragged = signal<string | undefined>(undefined);

/** Takes files that are dropped on the page while the component is there. */
export function useDropHandler(words: string, take: (found: CollectedFiles) => void): void {
  const last = useRef(take);
  last.current = take;
  useEffect(() => {
    const taker: DropHandler = { words, take: (found) => last.current(found) };
    dropTargets.value = [...dropTargets.peek(), taker];
    return () => {
      dropTargets.value = dropTargets.peek().filter((one) => one !== taker);
    };
  }, [words]);
}

const isTaken = (event: DragEvent): boolean =>
  hasFiles(event.dataTransfer) && dropTargets.peek().length > 0 && !document.querySelector("dialog[open]");

/** Listens for drags of files; once, in the page's frame. */
export function useDrops(): void {
  useEffect(() => {
    // Enter and leave events come for every element.
    let depth = 0;
    const end = () => {
      depth = 0;
      dragged.value = undefined;
    };
    const enter = (event: DragEvent) => {
      if (!isTaken(event)) return;
      depth += 1;
      dragged.value = dropTargets.peek().at(-1)?.words;
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (depth === 0) end();
    };
    const hover = (event: DragEvent) => {
      if (isTaken(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      end();
      const taker = dropTargets.peek().at(-1);
      if (!isTaken(event) || !event.dataTransfer || !taker) return;
      event.preventDefault();
      // Editors would insert the file as text.
      event.stopPropagation();
      filesOfDrop(event.dataTransfer).then(taker.take, (error: unknown) =>
        toast.failed("Couldn't read the dropped files", error),
      );
    };
    const all = { dragenter: enter, dragleave: leave, dragover: hover, drop, dragend: end };
    for (const [name, run] of Object.entries(all)) document.addEventListener(name, run as EventListener, true);
    return () => {
      for (const [name, run] of Object.entries(all)) document.removeEventListener(name, run as EventListener, true);
    };
  }, []);
}
