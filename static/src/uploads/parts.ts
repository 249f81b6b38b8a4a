/**
 * Cuts files beyond the upload limit into parts at record boundaries, each a CSV of its own with the header.
 *
 * Invariant: the same file with the same dialect gives the same parts, so that an interrupted upload is resumed by adding the
 * file again. Nothing is copied: parts are slices of the file, which are read and compressed when they are sent.
 */
import { UPLOAD_BYTES_MAX } from "../api/rules";
import { bytes } from "../format/number";
import { matcher } from "./globs";
import { compressionOf, stemOf } from "./source-names";

/** The settings of a mapping that decide where records end. */
export interface RecordShape {
  quote: string | null;
  escape: string | null;
  header: boolean;
  skipRows: number;
  skipRowsAfterHeader: number;
  skipFooterRows: number;
}

export interface Part {
  name: string;
  body: Blob;
  /** Whether it is compressed for sending. */
  pack: boolean;
}

/** Bytes of a part; leaves room for gzip's overhead on incompressible bytes. */
export const PART_BYTES = UPLOAD_BYTES_MAX - (4 << 20);

export const DEFAULT_SHAPE: RecordShape = {
  quote: '"',
  escape: null,
  header: true,
  skipRows: 0,
  skipRowsAfterHeader: 0,
  skipFooterRows: 0,
};

/** The shape of a config's `csv` object. */
export function shapeOf(csv: unknown): RecordShape {
  const given = typeof csv === "object" && csv !== null ? (csv as Record<string, unknown>) : {};
  const sign = (value: unknown, otherwise: string | null) =>
    value === null || typeof value === "string" ? value : otherwise;
  const rows = (value: unknown) => (typeof value === "number" && value > 0 ? value : 0);
  return {
    quote: sign(given.quote, '"'),
    escape: sign(given.escape, null),
    header: given.header !== false,
    skipRows: rows(given.skip_rows),
    skipRowsAfterHeader: rows(given.skip_rows_after_header),
    // Parts without a marked footer lose no rows.
    skipFooterRows: Array.isArray(given.footer_values) ? 0 : rows(given.skip_footer_rows),
  };
}

interface Variant {
  files?: string[];
  csv?: unknown;
}

/** The variant by which a mapping reads a file: the first whose globs match; undefined: the mapping itself. */
export function variantOf(mapping: unknown, key: string): Variant | undefined {
  const { variants } = (mapping ?? {}) as { variants?: Variant[] };
  return Array.isArray(variants) ? variants.find(({ files = [] }) => matcher(files)(key)) : undefined;
}

/** The `csv` object by which a mapping reads a file. */
export function csvOf(mapping: unknown, key: string): unknown {
  const own = (mapping ?? {}) as Variant;
  return (variantOf(mapping, key) ?? own).csv;
}

const LF = 0x0a;
/** Maximum size of a header and the lines around it, in bytes. */
const HEAD_BYTES_MAX = 4 << 20;

/** Finds ends of records in bytes that come in pieces. */
class RecordEnds {
  private quoted = false;
  private escaped = false;
  /** Bytes of a code unit, and which of them holds ASCII. */
  private readonly unit: number;
  private readonly place: number;

  constructor(
    private readonly quote: number,
    private readonly escape: number,
    first: Uint8Array,
  ) {
    const [a, b] = first;
    const wide = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff);
    this.unit = wide ? 2 : 1;
    this.place = a === 0xfe ? 1 : 0;
  }

  /** Calls `on` with the offset after each record that ends in the piece. `at`: the offset of the piece. */
  scan(piece: Uint8Array, at: number, raw: boolean, on: (end: number) => boolean): void {
    const { unit, place, quote, escape } = this;
    for (let i = (unit - ((at - place) % unit)) % unit; i < piece.length; i += unit) {
      const byte = piece[i];
      if (unit === 2 && piece[i + (place === 0 ? 1 : -1)] !== 0 && piece[i + (place === 0 ? 1 : -1)] !== undefined)
        continue;
      if (this.escaped) this.escaped = false;
      else if (byte === escape && escape !== quote) this.escaped = true;
      else if (byte === quote && !raw) this.quoted = !this.quoted;
      else if (byte === LF && !this.quoted && !on(at + i + unit - place)) return;
    }
  }
}

const codeOf = (sign: string | null): number => (sign === null ? -1 : sign.charCodeAt(0));

/** The end of the header and the lines around it, which every part repeats. */
export async function headOf(file: Blob, shape: RecordShape): Promise<number> {
  const start = new Uint8Array(await file.slice(0, HEAD_BYTES_MAX).arrayBuffer());
  const isWide = (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff);
  const isMarked = isWide || (start[0] === 0xef && start[1] === 0xbb);
  let end = 0;
  const steps: [number, boolean][] = [
    [shape.skipRows, true],
    [shape.header ? 1 : 0, false],
    [shape.skipRowsAfterHeader, true],
  ];
  for (const [records, raw] of steps) {
    let left = records;
    if (left === 0) continue;
    const ends = new RecordEnds(codeOf(shape.quote), codeOf(shape.escape), start);
    ends.scan(start.subarray(end), end, raw, (at) => {
      end = at;
      left -= 1;
      return left > 0;
    });
    if (left > 0) throw new Error(`the header isn't within the first ${bytes(HEAD_BYTES_MAX)}`);
  }
  return end === 0 && isMarked ? (isWide ? 2 : 3) : end;
}

/** Offsets at which the file is cut, the first of them after the head. */
async function cuts(file: Blob, shape: RecordShape, head: number, most: number): Promise<number[]> {
  const first = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const ends = new RecordEnds(codeOf(shape.quote), codeOf(shape.escape), first);
  const found = [head];
  let last = head;
  let at = head;
  const reader = file.slice(head).stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    ends.scan(value, at, false, (end) => {
      const begun = found.at(-1) ?? head;
      if (end - begun + head > most && last > begun) found.push(last);
      last = end;
      return true;
    });
    at += value.length;
    if (at - (found.at(-1) ?? head) > 2 * most && last <= (found.at(-1) ?? head))
      throw new Error(`a row is longer than ${bytes(most)}; check the quotes of the file`);
  }
  if (at - (found.at(-1) ?? head) + head > most && last > (found.at(-1) ?? head)) found.push(last);
  return found.filter((cut) => cut < file.size);
}

/** Why a file's size prevents its upload, with advice; undefined if it doesn't. */
export function sizeProblem(name: string, size: number): string | undefined {
  if (size <= UPLOAD_BYTES_MAX || compressionOf(name) === undefined) return undefined;
  return `${name} has ${bytes(size)}, more than the ${bytes(UPLOAD_BYTES_MAX)} of an upload. Add the uncompressed file: it is compressed and sent in parts`;
}

/**
 * The parts in which a file is uploaded: itself, or several. `packed`: whether parts may be compressed.
 * @throws Error with what to do
 */
export async function partsOf(
  file: File,
  shape: RecordShape,
  packed: boolean,
  most: number = PART_BYTES,
  limit: number = UPLOAD_BYTES_MAX,
): Promise<Part[]> {
  if (file.size <= limit) return [{ name: file.name, body: file, pack: false }];
  const problem = sizeProblem(file.name, file.size);
  if (problem !== undefined) throw new Error(problem);
  if (shape.skipFooterRows > 0) {
    if (packed) return [{ name: `${file.name}.gz`, body: file, pack: true }];
    throw new Error(`${file.name} has ${bytes(file.size)} and footer lines, so it can't be cut. Compress it with gzip`);
  }
  const head = await headOf(file, shape);
  const starts = await cuts(file, shape, head, most);
  const stem = stemOf(file.name);
  const ending = file.name.slice(stem.length) + (packed ? ".gz" : "");
  const digits = Math.max(3, String(starts.length).length);
  return starts.map((start, at) => {
    const body = new Blob([file.slice(0, head), file.slice(start, starts[at + 1] ?? file.size)]);
    return { name: `${stem}-part-${String(at + 1).padStart(digits, "0")}${ending}`, body, pack: packed };
  });
}
