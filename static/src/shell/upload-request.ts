/** Asks for files for a pipeline, or for any; the dialog of the shell asks for the table. */
import { signal } from "@preact/signals";
import { counted } from "../format/number";
import { chosenFiles } from "../uploads/files";
import { ACCEPTED } from "../uploads/source-names";
import { take } from "../uploads/accept";

/** Files that were offered together and belong to the same table. */
export interface FileGroup {
  /** Undefined: not known. */
  table: string | undefined;
  files: File[];
}

/** The groups of an offer, each with a dialog of its own. */
export interface Steps {
  groups: readonly FileGroup[];
  at: number;
  /** Files of earlier groups for which a new table was chosen. */
  toPreview: readonly File[];
}

export interface UploadRequest {
  /** Undefined: any pipeline, or a new one. */
  slug: string | undefined;
  files: readonly File[];
  /** Undefined: the files aren't grouped yet. */
  steps?: Steps;
}

/** Groups files by table, in the order of their first files; those without a table come last. */
export function groupsOf(files: readonly File[], tableOf: (file: File) => string | undefined): FileGroup[] {
  const groups = new Map<string | undefined, FileGroup>();
  for (const file of files) {
    const table = tableOf(file);
    const group = groups.get(table) ?? { table, files: [] };
    group.files.push(file);
    groups.set(table, group);
  }
  const unknown = groups.get(undefined);
  groups.delete(undefined);
  return [...groups.values(), ...(unknown ? [unknown] : [])];
}

/** The files of a step and of the next one. `table`: where the files go, as chosen. */
export function stepText({ groups, at, toPreview }: Steps, table: string | undefined): string {
  const next = groups[at + 1];
  const { files = [] } = groups[at] ?? {};
  const number = (some: readonly File[]) => counted(some.length, "file");
  const parts = [`Step ${at + 1} of ${groups.length}: ${number(files)}${table === undefined ? "" : ` for ${table}`}.`];
  if (next)
    parts.push(
      `Next: ${number(next.files)} ${next.table === undefined ? "without a matching table" : `for ${next.table}`}.`,
    );
  else if (toPreview.length > 0) parts.push(`Next: the preview of ${number(toPreview)}.`);
  if (parts.length > 1)
    parts.push(`Skip leaves out ${files.length === 1 ? "this file" : "these files"}, Cancel all that are left.`);
  return parts.join(" ");
}

export const uploadRequest = signal<UploadRequest | undefined>(undefined);

/** Opens the dialog for files that are there already. */
export function offerFiles(slug: string | undefined, files: File[]): void {
  if (files.length > 0) uploadRequest.value = { slug, files };
}

/** Opens the browser's file chooser; call it within a click or key handler. */
export function askForFiles(slug: string | undefined): void {
  const chooser = document.createElement("input");
  chooser.type = "file";
  chooser.multiple = true;
  chooser.accept = ACCEPTED;
  chooser.addEventListener("change", () => {
    void take(chosenFiles(chooser.files ?? [])).then((files) => offerFiles(slug, files));
  });
  chooser.click();
}
