/** Samples the start of a CSV up to a line break. */
import { compressionOf, type Compression } from "./source-names";

/** Maximum sample size that the service reads, in bytes. */
export const SAMPLE_BYTES_MAX = 8 << 20;
/** How far back a cut looks for a line break. */
const LINE_BYTES_MAX = 1 << 20;
/** Size of a file's head that has its header. */
const HEAD_BYTES_MAX = 64 << 10;
const LF = 0x0a;
const QUOTE = 0x22;

export interface Sample {
  body: Blob;
  /** Whether it is the whole file. */
  whole: boolean;
  /** File extension of the sample: names the compression, and doesn't start a run. */
  ending: `.txt${Compression | ""}`;
}

/** How browsers decompress; undefined: only the service does. */
const FORMATS: Record<Compression, CompressionFormat | undefined> = { ".gz": "gzip", ".zst": undefined };

/** The stream, decompressed; undefined if only the service can do that. */
function decompressed(stream: ReadableStream<Uint8Array<ArrayBuffer>>, compression: Compression | undefined) {
  if (compression === undefined) return stream;
  const format = FORMATS[compression];
  return format && stream.pipeThrough(new DecompressionStream(format));
}

/** Sample of a local file. */
export async function sampleOf(file: File): Promise<Sample> {
  const compression = compressionOf(file.name);
  if (compression && !FORMATS[compression]) return { body: file, whole: true, ending: `.txt${compression}` };
  if (compression === undefined && file.size <= SAMPLE_BYTES_MAX) return { body: file, whole: true, ending: ".txt" };
  return await sampleOfStream(file.stream(), file.name);
}

/** Sample of a stream, which is read no further than needed. */
export async function sampleOfStream(stream: ReadableStream<Uint8Array<ArrayBuffer>>, name: string): Promise<Sample> {
  const compression = compressionOf(name);
  const plain = decompressed(stream, compression);
  if (!plain) return { body: await new Response(stream).blob(), whole: true, ending: `.txt${compression ?? ""}` };
  const { bytes, whole } = await start(plain, SAMPLE_BYTES_MAX);
  return { body: new Blob([whole ? bytes : bytes.slice(0, cut(bytes))]), whole, ending: ".txt" };
}

/** The first bytes of a stream. */
export async function start(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; whole: boolean }> {
  const reader = stream.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let whole = false;
  while (size <= bytesMax) {
    const { done, value } = await reader.read();
    whole = done;
    if (done) break;
    pieces.push(value);
    size += value.length;
  }
  if (!whole) void reader.cancel().catch(() => undefined);
  const bytes = new Uint8Array(await new Blob(pieces).slice(0, bytesMax).arrayBuffer());
  return { bytes, whole };
}

/** End of the last complete record: after a line break outside quotes, else after the last line break. */
export function cut(bytes: Uint8Array): number {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe;
  let quoted = false;
  let safe = 0;
  let last = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) quoted = !quoted;
    else if (byte === LF) {
      // UTF-16LE line breaks have a second, zero byte.
      last = wide ? Math.min(at + 2, bytes.length) : at + 1;
      if (!quoted) safe = last;
    }
  }
  if (safe > 0 && bytes.length - safe < LINE_BYTES_MAX) return safe;
  return last > 0 ? last : bytes.length;
}

/** Lines of a file's head that are looked at. */
const HEAD_LINES_MAX = 40;

/** The first lines of a file, for comparing headers, and what tells its encoding apart from others. */
export interface FileStart {
  lines: string[];
  encoding: string;
  /** Whether any encoding reads it: it is ASCII, or has a byte order mark. */
  isOfAny: boolean;
}

/** Undefined if only the service can read the file. */
export async function firstLines(file: File): Promise<FileStart | undefined> {
  try {
    const compression = compressionOf(file.name);
    const plain = decompressed(compression ? file.stream() : file.slice(0, HEAD_BYTES_MAX).stream(), compression);
    if (!plain) return undefined;
    const head = await start(plain, HEAD_BYTES_MAX);
    const encoding = encodingOf(head.bytes);
    const text = new TextDecoder(encoding).decode(head.bytes);
    const isOfAny = markOf(head.bytes) !== undefined || head.bytes.every((byte) => byte < 0x80);
    return { lines: text.split(/\r\n|\n|\r/, HEAD_LINES_MAX), encoding, isOfAny };
  } catch {
    return undefined;
  }
}

/** A guess that is good enough to read a header: the service finds the encoding that is used. */
function encodingOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  try {
    // The last character may be cut.
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/** The encoding that a byte order mark names; undefined without one. */
export function markOf([a, b, c]: Uint8Array): string | undefined {
  if (a === 0xff && b === 0xfe) return "utf-16le";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  return a === 0xef && b === 0xbb && c === 0xbf ? "utf-8" : undefined;
}
