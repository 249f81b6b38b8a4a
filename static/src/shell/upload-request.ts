/** Asks for files for a pipeline, or for any; the dialog of the shell asks for the table. */
import { signal } from "@preact/signals";
import { chosenFiles } from "../uploads/files";
import { ACCEPTED } from "../uploads/source-names";
import { take } from "../uploads/accept";

interface UploadRequest {
  /** Undefined: any pipeline, or a new one. */
  slug: string | undefined;
  files: File[];
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
