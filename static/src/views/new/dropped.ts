import { signal } from "@preact/signals";

/** Files that were dropped elsewhere, for a new pipeline to be made from. */
export const droppedFiles = signal<File[]>([]);
