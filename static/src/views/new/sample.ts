/** The first bytes of a CSV, cut where a line ends, as plain text or as they are stored. */

/** A proposal and a preview read no more than this of a sample, in bytes. */
export const SAMPLE_BYTES_MAX = 8 << 20;
/** A line that a cut may look back for. */
const LINE_BYTES_MAX = 1 << 20;
const LF = 0x0a;
const QUOTE = 0x22;

export interface Sample {
  body: Blob;
  /** All of the file is in it. */
  whole: boolean;
  /** What the sample's name ends with: it says how it is compressed, and never that it is a CSV that starts a run. */
  ending: ".txt" | ".txt.zst";
}

export const isGzip = (name: string): boolean => /\.gz$/i.test(name);
export const isZstd = (name: string): boolean => /\.zst$/i.test(name);

/** The sample of a file on this device. */
export async function sampleOf(file: File): Promise<Sample> {
  // Only the service reads zstd: it gets the file as it is.
  if (isZstd(file.name)) return { body: file, whole: true, ending: ".txt.zst" };
  if (!isGzip(file.name) && file.size <= SAMPLE_BYTES_MAX) return { body: file, whole: true, ending: ".txt" };
  return await sampleOfStream(file.stream(), file.name);
}

/** The sample of bytes that come in, of which no more than needed are read. */
export async function sampleOfStream(stream: ReadableStream<Uint8Array<ArrayBuffer>>, name: string): Promise<Sample> {
  const plain = isGzip(name) ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  const { bytes, whole } = await start(plain, SAMPLE_BYTES_MAX);
  return { body: new Blob([whole ? bytes : bytes.slice(0, cut(bytes))]), whole, ending: ".txt" };
}

/** At most so many bytes of a stream's start. */
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

/** Where the last whole record ends: after a line break outside of quotes, else after the last line break. */
export function cut(bytes: Uint8Array): number {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe;
  let quoted = false;
  let safe = 0;
  let last = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) quoted = !quoted;
    else if (byte === LF) {
      // In UTF-16 (little end first) the line break has a second, empty byte.
      last = wide ? Math.min(at + 2, bytes.length) : at + 1;
      if (!quoted) safe = last;
    }
  }
  if (safe > 0 && bytes.length - safe < LINE_BYTES_MAX) return safe;
  return last > 0 ? last : bytes.length;
}

/** The first line of a file as bytes read as Latin-1: to tell whether files have the same header. */
export async function firstLine(file: File): Promise<string | undefined> {
  if (isZstd(file.name)) return undefined;
  try {
    const head = isGzip(file.name)
      ? await start(file.stream().pipeThrough(new DecompressionStream("gzip")), 64 << 10)
      : await start(file.slice(0, 64 << 10).stream(), 64 << 10);
    const text = new TextDecoder("latin1").decode(head.bytes);
    return text.split(/\r?\n/, 1)[0];
  } catch {
    return undefined;
  }
}
