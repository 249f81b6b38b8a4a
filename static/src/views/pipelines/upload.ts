import { sendWatched, type Sending } from "../../api/sending";

export interface Imported {
  slug: string;
  objects: number;
  bytes: number;
}

/** Uploads an archive, optionally under another slug. */
export function sendArchive(file: File, slug: string, onSent: (bytes: number) => void): Sending<Imported> {
  const form = new FormData();
  if (slug) form.append("slug", slug);
  form.append("file", file, file.name || "archive.zip");
  return sendWatched({ method: "POST", path: "/api/pipelines/import", body: form, file }, onSent);
}
