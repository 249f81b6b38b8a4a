/**
 * Downloads of full results; they continue across views.
 *
 * Large downloads stream to a file where the browser supports it (Chromium, on https or localhost). Otherwise the
 * browser buffers the data in pieces and saves it at the end.
 */
import { signal } from "@preact/signals";
import { api, ask, sendRaw } from "../api/client";
import { ApiFailure } from "../api/failure";
import { freshId } from "../api/id";
import { saveFile } from "../browser/save";
import { bytes } from "../format/number";
import { toast } from "./toasts";

export type Format = "csv" | "parquet" | "json";

export const FORMATS: { format: Format; label: string; hint: string }[] = [
  { format: "csv", label: "CSV", hint: "For spreadsheets and most tools" },
  { format: "parquet", label: "Parquet", hint: "Compact, keeps column types" },
  { format: "json", label: "JSON", hint: "An array of objects" },
];

/** Largest file that is buffered in the browser, in bytes. */
const HELD_BYTES_MAX = 2 * 1024 ** 3;
/** Larger results are streamed to disk where possible; in bytes. */
const IN_MEMORY_MAX = 64 * 1024 ** 2;
/** Buffer size that is handed to the browser, which may keep it on disk. */
const PIECE_BYTES = 16 * 1024 ** 2;
/** Progress interval, in milliseconds. */
const PROGRESS_INTERVAL_MS = 100;

interface Running {
  id: string;
  slug: string;
  /** File name. */
  name: string;
  format: Format;
  bytes: number;
  cancel: () => void;
}

interface DownloadRequest {
  slug: string;
  /** File name without extension. */
  name: string;
  format: Format;
  sql: string;
  /** Size of the data behind the result in bytes, if known. */
  size?: number;
}

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{
    createWritable: () => Promise<WritableStream<Uint8Array>>;
  }>;
}

/** Downloads in progress. */
export const downloads = signal<Running[]>([]);

export async function download({ slug, name, format, sql, size = 0 }: DownloadRequest): Promise<void> {
  const file = `${name}.${format}`;
  const id = freshId();
  const ending = new AbortController();
  let sink: WritableStream<Uint8Array> | undefined;
  try {
    sink = size > IN_MEMORY_MAX ? await chosenFile(file) : undefined;
  } catch {
    return; // The file dialog was cancelled.
  }
  const cancel = () => {
    ending.abort();
    const params = { path: { pipeline: slug } };
    void ask(api.POST("/api/p/{pipeline}/query/cancel", { params, body: { query_id: id } })).catch(() => undefined);
  };
  downloads.value = [...downloads.value, { id, slug, name: file, format, bytes: 0, cancel }];
  try {
    const response = await sendRaw(`/api/p/${encodeURIComponent(slug)}/query/download?format=${format}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sql, query_id: id }),
      signal: ending.signal,
    });
    const received = await kept(response, sink, file, (sum) => {
      downloads.value = downloads.value.map((one) => (one.id === id ? { ...one, bytes: sum } : one));
    });
    toast.done(`Downloaded ${file}: ${bytes(received)}`);
  } catch (error) {
    const cut =
      error instanceof TypeError
        ? new ApiFailure(0, "cut_off", "the connection was closed before the download completed")
        : error;
    if (!ending.signal.aborted) toast.failed(`${file} wasn't downloaded`, cut);
  } finally {
    downloads.value = downloads.value.filter((one) => one.id !== id);
  }
}

/** Writes a body to the chosen file, or saves it as a download. Returns its length in bytes. */
async function kept(
  response: Response,
  sink: WritableStream<Uint8Array> | undefined,
  name: string,
  progress: (received: number) => void,
): Promise<number> {
  if (!sink) {
    const file = await collect(response, progress, HELD_BYTES_MAX);
    saveFile(file, name);
    return file.size;
  }
  let sum = 0;
  const report = throttled(progress);
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      report((sum += chunk.byteLength));
      controller.enqueue(chunk);
    },
  });
  await response.body?.pipeThrough(counting).pipeTo(sink);
  return sum;
}

/** Buffers a body with progress. @throws ApiFailure if it is too large */
export async function collect(response: Response, progress: (received: number) => void, max: number): Promise<Blob> {
  const reader = response.body?.getReader();
  const report = throttled(progress);
  const pieces: Blob[] = [];
  let loose: BlobPart[] = [];
  let [received, looseBytes] = [0, 0];
  for (;;) {
    const step = await reader?.read();
    if (!step || step.done) break;
    received += step.value.byteLength;
    looseBytes += step.value.byteLength;
    if (received > max) {
      await reader?.cancel();
      const message = `the file is larger than ${bytes(max)}; filter or aggregate first`;
      throw new ApiFailure(0, "download_too_large", message);
    }
    loose.push(step.value);
    if (looseBytes >= PIECE_BYTES) {
      pieces.push(new Blob(loose));
      [loose, looseBytes] = [[], 0];
    }
    report(received);
  }
  progress(received);
  return new Blob([...pieces, ...loose], { type: response.headers.get("Content-Type") ?? "application/octet-stream" });
}

function throttled(progress: (received: number) => void): (received: number) => void {
  let reportedAt = 0;
  return (received) => {
    const now = performance.now();
    if (now - reportedAt < PROGRESS_INTERVAL_MS) return;
    reportedAt = now;
    progress(received);
  };
}

/** Undefined if the browser has no file picker. @throws if the user cancelled */
async function chosenFile(suggestedName: string): Promise<WritableStream<Uint8Array> | undefined> {
  const { showSaveFilePicker } = window as Picker;
  if (!showSaveFilePicker) return undefined;
  return (await showSaveFilePicker.call(window, { suggestedName })).createWritable();
}
