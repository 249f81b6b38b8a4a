/**
 * Downloads of whole results.
 *
 * A large one goes straight to a file of the person's choice where the browser can do that (Chromium, over https or on
 * this machine); else the browser keeps it until its last byte and saves it then.
 */
import { signal } from "@preact/signals";
import { api, ask, sendRaw } from "../../api/client";
import { say } from "../../components/toasts";

export type Format = "csv" | "parquet" | "json";

export const FORMATS: Record<Format, { label: string; type: string }> = {
  csv: { label: "CSV", type: "text/csv" },
  parquet: { label: "Parquet", type: "application/vnd.apache.parquet" },
  json: { label: "JSON", type: "application/json" },
};

/** A table whose Parquet files are larger than that is written to disk as it comes, where that is possible. */
const IN_MEMORY_MAX = 64 * 2 ** 20;
const TOLD_MS = 200;

export interface Running {
  id: string;
  slug: string;
  name: string;
  bytes: number;
  cancel: () => void;
}

/** What is on its way, whatever view is shown. */
export const downloads = signal<Running[]>([]);

interface Asked {
  slug: string;
  /** Without the ending. */
  name: string;
  format: Format;
  sql: string;
  /** Of what the result is made, in bytes. */
  size: number;
}

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{
    createWritable: () => Promise<WritableStream<Uint8Array>>;
  }>;
}

export async function download({ slug, name, format, sql, size }: Asked): Promise<void> {
  const file = `${name}.${format}`;
  const id = crypto.randomUUID?.() ?? `d${Date.now()}`;
  const ending = new AbortController();
  let sink: WritableStream<Uint8Array> | undefined;
  try {
    sink = size > IN_MEMORY_MAX ? await chosenFile(file) : undefined;
  } catch {
    return; // No file was chosen.
  }
  const cancel = () => {
    ending.abort();
    void ask(
      api.POST("/api/p/{pipeline}/query/cancel", { params: { path: { pipeline: slug } }, body: { query_id: id } }),
    ).catch(() => undefined);
  };
  downloads.value = [...downloads.value, { id, slug, name: file, bytes: 0, cancel }];
  try {
    const response = await sendRaw(`/api/p/${encodeURIComponent(slug)}/query/download?format=${format}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ sql, query_id: id }),
      signal: ending.signal,
    });
    const body = response.body?.pipeThrough(counting(id));
    if (!body) throw new Error("the answer has no body");
    if (sink) await body.pipeTo(sink, { signal: ending.signal });
    else save(await new Response(body, { headers: { "Content-Type": FORMATS[format].type } }).blob(), file);
    say.done(`Downloaded ${file}`);
  } catch (error) {
    if (!ending.signal.aborted) say.failed(`${file} wasn't downloaded`, error);
  } finally {
    downloads.value = downloads.value.filter((one) => one.id !== id);
  }
}

/** Undefined: this browser has no such way. @throws if the person chose none */
async function chosenFile(suggestedName: string): Promise<WritableStream<Uint8Array> | undefined> {
  const { showSaveFilePicker } = window as Picker;
  if (!showSaveFilePicker) return undefined;
  return (await showSaveFilePicker.call(window, { suggestedName })).createWritable();
}

/** Tells how many bytes have come. */
function counting(id: string): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let bytes = 0;
  let told = 0;
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      controller.enqueue(chunk);
      const now = performance.now();
      if (now - told < TOLD_MS) return;
      told = now;
      downloads.value = downloads.value.map((one) => (one.id === id ? { ...one, bytes } : one));
    },
  });
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to save it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
