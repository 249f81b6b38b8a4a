/** Fetches the whole result of a query as a file, piece by piece, so that progress shows and it can be stopped. */
import { signal, type Signal } from "@preact/signals";
import { sendRaw } from "../../api/client";
import { ApiFailure } from "../../api/failure";
import { say } from "../../components/toasts";
import { bytes } from "../../format/number";

export type Format = "csv" | "parquet" | "json";

/** Largest file that a browser is asked to hold before it is saved, in bytes. */
export const DOWNLOAD_BYTES_MAX = 2 * 1024 ** 3;
/** So much is handed over to the browser at a time, which may keep it on the disk. */
const PIECE_BYTES = 16 * 1024 ** 2;
/** Progress is told this often, in milliseconds. */
const TOLD_EVERY_MS = 100;

export interface Download {
  format: Format;
  received: number;
  stop: () => void;
}

const downloads = new Map<string, Signal<Download | undefined>>();

/** The download of a pipeline's query that is on. */
export function downloadOf(slug: string): Signal<Download | undefined> {
  const known = downloads.get(slug) ?? signal<Download | undefined>(undefined);
  downloads.set(slug, known);
  return known;
}

/** Reads a body into a file, telling how much there is. @throws ApiFailure when it is too large or cut off */
export async function collect(response: Response, type: string, progress: (received: number) => void, max: number) {
  const reader = response.body?.getReader();
  const pieces: Blob[] = [];
  let loose: BlobPart[] = [];
  let [received, looseBytes, told] = [0, 0, 0];
  for (;;) {
    const step = await reader?.read();
    if (!step || step.done) break;
    received += step.value.byteLength;
    looseBytes += step.value.byteLength;
    if (received > max) {
      await reader?.cancel();
      throw new ApiFailure(
        0,
        "download_too_large",
        `the file is larger than ${bytes(max)}; filter, or aggregate first`,
      );
    }
    loose.push(step.value);
    if (looseBytes >= PIECE_BYTES) {
      pieces.push(new Blob(loose));
      [loose, looseBytes] = [[], 0];
    }
    if (performance.now() - told > TOLD_EVERY_MS) {
      told = performance.now();
      progress(received);
    }
  }
  progress(received);
  return new Blob([...pieces, ...loose], { type });
}

function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export async function download(slug: string, sql: string, format: Format): Promise<void> {
  const state = downloadOf(slug);
  if (state.value) return;
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  state.value = { format, received: 0, stop };
  try {
    const response = await sendRaw(`/api/p/${encodeURIComponent(slug)}/query/download?format=${format}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sql }),
      signal: stopped.signal,
    });
    const type = response.headers.get("Content-Type") ?? "application/octet-stream";
    const progress = (received: number) => {
      state.value = { format, received, stop };
    };
    const file = await collect(response, type, progress, DOWNLOAD_BYTES_MAX);
    const name = `${slug}-query.${format}`;
    save(file, name);
    say.done(`${name} is saved: ${bytes(file.size)}.`);
  } catch (error) {
    if (!stopped.signal.aborted) {
      const cut =
        error instanceof TypeError ? new ApiFailure(0, "cut_off", "the connection ended before it was whole") : error;
      say.failed("The result wasn't downloaded", cut);
    }
  } finally {
    state.value = undefined;
  }
}
