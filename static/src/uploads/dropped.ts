import { signal } from "@preact/signals";

/** Files dropped on another view; the new-pipeline wizard takes them when it opens. */
export const droppedFiles = signal<File[]>([]);
