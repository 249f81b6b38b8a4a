/**
 * Downloads of whole results, which go on whatever view is shown.
 *
 * A large one goes straight to a file of the person's choice where the browser can do that (Chromium, over https or on
 * this machine); else the browser keeps it until its last byte, piece by piece, and saves it then.
 */
import { signal } from "@preact/signals";
import { api, ask, sendRaw } from "../api/client";
import { ApiFailure } from "../api/failure";
import { freshId } from "../api/id";
import { saveFile } from "../browser/save";
import { bytes } from "../format/number";
import { say } from "./toasts";

export type Format = "csv" | "parquet" | "json";

export const FORMATS: { format: Format; label: string; hint: string }[] = [
  { format: "csv", label: "CSV", hint: "For spreadsheets and most tools" },
  { format: "parquet", label: "Parquet", hint: "Compact, keeps column types" },
  { format: "json", label: "JSON", hint: "An array of objects" },
];

/** Largest file that a browser is asked to hold before it is saved, in bytes. */
const HELD_BYTES_MAX = 2 * 1024 ** 3;
/** A result made of more than that is written to disk as it comes, where that is possible; in bytes. */
const IN_MEMORY_MAX = 64 * 1024 ** 2;
/** So much is handed over to the browser at a time, which may keep it on the disk. */
const PIECE_BYTES = 16 * 1024 ** 2;
/** Progress is told this often, in milliseconds. */
const TOLD_EVERY_MS = 100;

interface Running {
  id: string;
  slug: string;
  /** Of the file. */
  name: string;
  format: Format;
  bytes: number;
  cancel: () => void;
}

interface Asked {
  slug: string;
  /** Of the file, without the ending. */
  name: string;
  format: Format;
  sql: string;
  /** Of what the result is made, in bytes, where that is known. */
  size?: number;
}

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{
    createWritable: () => Promise<WritableStream<Uint8Array>>;
  }>;
}

/** What is on its way. */
export const downloads = signal<Running[]>([]);

export async function download({ slug, name, format, sql, size = 0 }: Asked): Promise<void> {
  const file = `${name}.${format}`;
  const id = freshId();
  const ending = new AbortController();
  let sink: WritableStream<Uint8Array> | undefined;
  try {
    sink = size > IN_MEMORY_MAX ? await chosenFile(file) : undefined;
  } catch {
    return; // No file was chosen.
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
    say.done(`Downloaded ${file}: ${bytes(received)}`);
  } catch (error) {
    const cut =
      error instanceof TypeError
        ? new ApiFailure(0, "cut_off", "the connection was closed before the download completed")
        : error;
    if (!ending.signal.aborted) say.failed(`${file} wasn't downloaded`, cut);
  } finally {
    downloads.value = downloads.value.filter((one) => one.id !== id);
  }
}

/** Keeps a body in the chosen file, or as a download. Gives its length in bytes. */
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
  const tell = calmly(progress);
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      tell((sum += chunk.byteLength));
      controller.enqueue(chunk);
    },
  });
  await response.body?.pipeThrough(counting).pipeTo(sink);
  return sum;
}

/** Reads a body into a file, telling how much there is. @throws ApiFailure when it is too large */
export async function collect(response: Response, progress: (received: number) => void, max: number): Promise<Blob> {
  const reader = response.body?.getReader();
  const tell = calmly(progress);
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
    tell(received);
  }
  progress(received);
  return new Blob([...pieces, ...loose], { type: response.headers.get("Content-Type") ?? "application/octet-stream" });
}

function calmly(progress: (received: number) => void): (received: number) => void {
  let told = 0;
  return (received) => {
    const now = performance.now();
    if (now - told < TOLD_EVERY_MS) return;
    told = now;
    progress(received);
  };
}

/** Undefined: this browser has no such way. @throws if the person chose none */
async function chosenFile(suggestedName: string): Promise<WritableStream<Uint8Array> | undefined> {
  const { showSaveFilePicker } = window as Picker;
  if (!showSaveFilePicker) return undefined;
  return (await showSaveFilePicker.call(window, { suggestedName })).createWritable();
}
