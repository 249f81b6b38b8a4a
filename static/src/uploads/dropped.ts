import { signal } from "@preact/signals";

/** Files that were dropped elsewhere, and of which a pipeline is to be made; the view takes them when it opens. */
export const droppedFiles = signal<File[]>([]);
