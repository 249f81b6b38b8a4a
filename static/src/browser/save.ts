/** File downloads. */

/** Starts the download of a URL of the service. */
export function saveFrom(href: string, name: string): void {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

export function saveFile(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  saveFrom(url, name);
  // By then the browser has opened it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Downloads a pipeline's archive. */
export function exportPipeline(slug: string): void {
  saveFrom(`/api/p/${encodeURIComponent(slug)}/export`, `${slug}.zip`);
}
