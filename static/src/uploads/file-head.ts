/** Reads the header of a file, also where lines of text such as a title stand before it. */
import { split } from "../format/delimited";

/** Lines after the header that have its width. */
const RECORDS_MIN = 2;
const DELIMITERS = [",", ";", "\t", "|"] as const;
const VALUE = /^[-+($€£]*\d/;

export interface FileHead {
  delimiter: string;
  /** Lines before the header. */
  before: number;
  /** Number of cells. */
  width: number;
  /** Names in the header, in lower case and in order; undefined where the line is data. */
  header: string[] | undefined;
}

/** What the first lines of a file tell. */
export function readHead(lines: readonly string[]): FileHead {
  const [first = ""] = lines;
  const titled = DELIMITERS.map((sign) => [sign, linesBeforeHeader(lines, sign, '"')] as const);
  const [below, before = 0] = titled.find(([, found]) => found !== undefined) ?? [];
  const unquoted = first.replace(/"[^"]*("|$)/g, "");
  const counts = DELIMITERS.map((sign) => unquoted.split(sign).length);
  const delimiter = below ?? DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
  const cells = recordsOf(lines, delimiter, '"').find(({ line }) => line === before)?.cells ?? [];
  const names = cells.map((cell) => cell.toLowerCase());
  const header = cells.some((cell) => VALUE.test(cell)) ? undefined : names;
  return { delimiter, before, width: cells.length, header };
}

/** Lines that a record without a closing quote may have at the end of a head, which cuts it. */
const CUT_LINES_MAX = 10;

interface HeadRecord {
  /** The line that it begins in. */
  line: number;
  cells: string[];
}

/** Text of the line after the last one, which a quote that nothing closes would take in. */
const END = "\0";

/** The records of the first lines: a line break within quotes doesn't end one. */
function recordsOf(lines: readonly string[], delimiter: string, quote: string | null): HeadRecord[] {
  const records: HeadRecord[] = [];
  let line = 0;
  while (line < lines.length) {
    for (const row of split([...lines.slice(line), END].join("\n"), delimiter, quote)) {
      if (line === lines.length) break;
      const extent = row.join("").split("\n").length;
      const isOpen = line + extent > lines.length;
      // A quote that nothing closes is text, unless the head ends before its record does.
      if (isOpen && line > 0 && extent <= CUT_LINES_MAX) return records;
      const cells = isOpen ? (split(lines[line] ?? "", delimiter, quote)[0] ?? []) : row;
      records.push({ line, cells: cells.map((cell) => cell.trim()) });
      line += isOpen ? 1 : extent;
      if (isOpen) break;
    }
  }
  return records;
}

const isNumber = (cell: string): boolean => /^[-+($\u20ac\u00a3]*\d[\d.,:/ -]*%?\)?$/.test(cell);

/** Whether the cells can be the names of columns. */
const areNames = (cells: readonly string[]): boolean =>
  cells.every((cell) => cell !== "" && !isNumber(cell)) &&
  new Set(cells.map((cell) => cell.toLowerCase())).size === cells.length;

/**
 * The number of lines before the header: at least one line of fewer values, then a line of distinct names, then records
 * of the same width with a number or date in some column. Undefined if there is no such header.
 */
export function linesBeforeHeader(
  lines: readonly string[],
  delimiter: string,
  quote: string | null,
): number | undefined {
  const found = recordsOf(lines, delimiter, quote);
  const records = found.map(({ cells }) => cells);
  const values = records.map((cells) => cells.filter((cell) => cell !== "").length);
  for (let at = 1; at < records.length - RECORDS_MIN; at += 1) {
    const names = records[at] ?? [];
    const width = names.length;
    if (width < 2 || !areNames(names)) continue;
    const after = records.slice(at + 1).filter((_, next) => values[at + 1 + next] !== 0);
    const same = after.filter((cells) => cells.length === width);
    const isTable = same.length >= RECORDS_MIN && same.length * 10 >= after.length * 9;
    const hasNumbers = names.some((_, column) => same.every((cells) => isNumber(cells[column] ?? "")));
    const isTitle = values.slice(0, at).every((filled) => filled < width);
    if (isTable && hasNumbers && isTitle) return found[at]?.line;
  }
  return undefined;
}
