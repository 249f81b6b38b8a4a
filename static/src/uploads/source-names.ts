/** Names of CSVs and their endings. */
import { COMPRESSION_ENDINGS, TEXT_ENDINGS } from "../api/rules";

export type Compression = (typeof COMPRESSION_ENDINGS)[number];

const oneOf = (endings: readonly string[]): string => `(?:${endings.join("|").replaceAll(".", "\\.")})`;
const TEXT = oneOf(TEXT_ENDINGS);
const COMPRESSION = oneOf(COMPRESSION_ENDINGS);
const COMPRESSED = new RegExp(`${COMPRESSION}$`, "i");
const SOURCE = new RegExp(`(?:^[^.]+|${TEXT})${COMPRESSION}?$`, "i");
const SOURCE_ENDING = new RegExp(`(?:${TEXT})?${COMPRESSION}?$`, "i");

/** Value of `accept` of a file chooser. */
export const ACCEPTED = [...TEXT_ENDINGS, ...COMPRESSION_ENDINGS, ".zip", ".xlsx", "text/csv"].join(",");

/** Whether a file of this name may be delimited text, so that its upload starts a run: also one without an ending. */
export const isSource = (name: string): boolean => SOURCE.test(name);

export function compressionOf(name: string): Compression | undefined {
  const ending = COMPRESSED.exec(name)?.[0].toLowerCase();
  return COMPRESSION_ENDINGS.find((one) => one === ending);
}

/** The name without the ending of a compression. */
export const withoutCompression = (name: string): string => name.replace(COMPRESSED, "");

/** File name without its endings. */
export const stemOf = (name: string): string => name.replace(SOURCE_ENDING, "") || "data";

/** Matches the names under which a file is stored: as it is, compressed, or in numbered parts. */
export function formsOf(name: string): RegExp {
  const stem = stemOf(name);
  const ending = name.startsWith(stem) ? withoutCompression(name).slice(stem.length) : "";
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal(stem)}(?:-part-\\d{3,})?${literal(ending)}${COMPRESSION}?$`);
}

/** Endings of a file of this name and of its compressed variants; as it is if the ending isn't known. */
export function variantsOf(name: string): string[] {
  const ending = /(\.[a-z0-9]{1,4}){1,2}$/i.exec(name)?.[0] ?? "";
  const known = SOURCE_ENDING.exec(ending)?.[0] ?? "";
  const plain = withoutCompression(known);
  return plain === "" ? [known] : [known, plain, ...COMPRESSION_ENDINGS.map((compression) => plain + compression)];
}

const MONTHS = /(jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]*$/;

/** The letters of a file's name, without what counts the files of a series: `sales_q1` and `sales-2024-03` are `sales`. */
export const seriesOf = (name: string): string =>
  stemOf(name)
    .toLowerCase()
    .replace(/[\d\W_]+/gu, " ")
    .trim()
    .replace(/ (q|h|m|kw|cw|week|month|year|part|page)$/, "")
    .replace(MONTHS, "")
    .trim();
