/** Recognises by its first bytes a file that isn't delimited text, whatever its name says. */
import { compressionOf, type Compression } from "./source-names";

/** Bytes that are looked at. */
export const HEAD_BYTES = 4 << 10;

/** Why a file can't be read, and what to do about it. */
interface Kind {
  /** What it is: "a PDF". */
  is: string;
  todo: string;
}

const EXPORT = "Export the data as CSV first";
const SHEETS = "In Excel or another spreadsheet program, save each sheet as “CSV UTF-8”, then add the CSVs";
const EXTRACT = "Extract it, then add the CSVs";
const IMAGE: Kind = { is: "an image", todo: EXPORT };

const archive = (is: string): Kind => ({ is, todo: EXTRACT });
const compressed = (is: string, ending: string): Kind => ({
  is: `compressed with ${is}`,
  todo: `Rename it so that its name ends in ${ending}, or extract it`,
});

/** Files begin with these signs; each stands for a byte. */
const SIGNATURES: readonly (readonly [string, Kind])[] = [
  ["%PDF-", { is: "a PDF", todo: EXPORT }],
  ["%!PS", { is: "a PostScript document", todo: EXPORT }],
  ["{\\rtf", { is: "an RTF document", todo: "Save it as plain text" }],
  ["\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", { is: "an old Office document, such as .xls", todo: SHEETS }],
  ["\x1f\x8b", compressed("gzip", ".gz")],
  ["\x28\xb5\x2f\xfd", compressed("zstd", ".zst")],
  ["BZh", archive("compressed with bzip2")],
  ["\xfd7zXZ\0", archive("compressed with xz")],
  ["7z\xbc\xaf\x27\x1c", archive("a 7z archive")],
  ["Rar!\x1a\x07", archive("a RAR archive")],
  ["\x89PNG\r\n\x1a\n", IMAGE],
  ["\xff\xd8\xff", IMAGE],
  ["GIF87a", IMAGE],
  ["GIF89a", IMAGE],
  ["II*\0", IMAGE],
  ["MM\0*", IMAGE],
  ["PAR1", { is: "a Parquet file", todo: EXPORT }],
  ["SQLite format 3\0", { is: "an SQLite database", todo: EXPORT }],
];

/** Names of the first entries of Office documents. */
const OFFICE = /\[Content_Types\]\.xml|_rels\/|docProps\/|^.{30}(xl|word|ppt)\/|mimetypeapplication\/vnd\.oasis/s;
const HTML = /^\s*(<!--.*?-->\s*)?(<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])/is;
const XML = /^\s*<\?xml\s/i;
/** An object, or a list of objects: a header of a CSV doesn't begin so. */
const JSON_TEXT = /^\s*\[?\s*\{\s*"[^"\n]*"\s*:/;
const TAR_MAGIC_AT = 257;

/** Share of NULs among every second byte from which on text is UTF-16 without a mark. */
const WIDE_SHARE_MIN = 0.3;
const NARROW_SHARE_MAX = 0.02;

function isUtf16(head: Uint8Array): boolean {
  const [a, b, c, d] = head;
  if (a === 0xff && b === 0xfe) return !(c === 0 && d === 0);
  if (a === 0xfe && b === 0xff) return true;
  const nuls = [0, 0];
  head.forEach((byte, at) => {
    if (byte === 0) nuls[at % 2] = (nuls[at % 2] ?? 0) + 1;
  });
  const [few = 0, many = 0] = nuls.map((found) => (2 * found) / head.length).sort((one, other) => one - other);
  return many >= WIDE_SHARE_MIN && few <= NARROW_SHARE_MAX;
}

/** The kind of a file by its first bytes; undefined: it may be delimited text. */
export function kindOf(head: Uint8Array): Kind | undefined {
  const raw = String.fromCharCode(...head);
  const known = SIGNATURES.find(([signature]) => raw.startsWith(signature))?.[1];
  if (known) return known;
  if (raw.startsWith("PK\x03\x04") || raw.startsWith("PK\x05\x06"))
    return OFFICE.test(raw)
      ? { is: "an Excel workbook or another Office document", todo: SHEETS }
      : { is: "a ZIP archive", todo: "Rename it so that its name ends in .zip, or extract it" };
  if (raw.startsWith("RIFF") && raw.startsWith("WEBP", 8)) return IMAGE;
  if (raw.startsWith("ustar", TAR_MAGIC_AT)) return archive("a tar archive");
  if (head.includes(0) && !isUtf16(head)) return { is: "not text: it has NUL bytes", todo: EXPORT };
  // Also of UTF-16: ASCII without its NULs.
  const text = raw.replace(/^(\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, "").replaceAll("\0", "");
  if (HTML.test(text))
    return {
      is: "a web page (HTML)",
      todo: "If it was downloaded, the page may have the reason; download the CSV again",
    };
  if (XML.test(text)) return { is: "an XML document", todo: EXPORT };
  if (JSON_TEXT.test(text)) return { is: "a JSON document", todo: EXPORT };
  return undefined;
}

/** The first bytes of a gzip file, decompressed; undefined if they can't be. */
async function inflatedHead(file: Blob): Promise<Uint8Array | undefined> {
  const reader = file
    .slice(0, 64 * HEAD_BYTES)
    .stream()
    .pipeThrough(new DecompressionStream("gzip"))
    .getReader();
  try {
    const { value } = await reader.read();
    return value?.subarray(0, HEAD_BYTES);
  } catch {
    return undefined;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

const bytesOf = async (file: Blob): Promise<Uint8Array> =>
  new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());

/** How compressed files begin; one of zstd may have a frame before its data that readers skip. */
const COMPRESSED: Record<Compression, RegExp> = {
  ".gz": /^\x1f\x8b/,
  ".zst": /^(\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)/,
};

/** What a file is that can't be read as delimited text, with what to do; undefined if it may be. */
export async function contentProblem(file: File): Promise<string | undefined> {
  const sentence = (is: string, todo: string) => `${file.name} is ${is}. ${todo}`;
  let head: Uint8Array | undefined;
  try {
    head = await bytesOf(file);
  } catch {
    // A file that can't be read fails with its cause when it is sent.
    return undefined;
  }
  const compression = compressionOf(file.name);
  if (head.length === 0 || compression === undefined) {
    const kind = kindOf(head);
    return kind && sentence(kind.is, kind.todo);
  }
  if (!COMPRESSED[compression].test(String.fromCharCode(...head.subarray(0, 4)))) {
    const kind = kindOf(head) ?? {
      is: `not compressed, although its name ends in ${compression}`,
      todo: `Remove ${compression} from its name`,
    };
    return sentence(kind.is, kind.todo);
  }
  const inner = compression === ".gz" ? await inflatedHead(file) : undefined;
  const kind = inner && kindOf(inner);
  return kind && `${file.name} has, compressed, ${kind.is.replace(/^not text: it has /, "")}. ${kind.todo}`;
}
