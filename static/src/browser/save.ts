/** Files that a browser is handed over to keep. */

/** Starts the download of an address of the service. */
export function saveFrom(href: string, name: string): void {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  saveFrom(url, name);
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A pipeline's archive. */
export function exportPipeline(slug: string): void {
  saveFrom(`/api/p/${encodeURIComponent(slug)}/export`, `${slug}.zip`);
}
