/** Finds the header of a file that has lines of text before it, such as a title. */
import type { Cell } from "../../api/types";
import { split } from "../../format/delimited";
import { previewOf } from "../../tables/preview";
import { itemOf, type Dialect } from "../../tables/dialect";
import { stagedGlob } from "./recut";
import type { Staged } from "./staging";

/** Lines that are looked at. */
const LINES_MAX = 40;
/** Lines after the header that have its width. */
const RECORDS_MIN = 2;
/** Separates nothing: each line is one cell. */
const NO_DELIMITER = "\u0001";

/** The first lines of a staged file, empty ones included. @throws ApiFailure */
export async function firstLines(staged: Staged, dialect: Dialect): Promise<string[]> {
  const csv = {
    delimiter: NO_DELIMITER,
    quote: null,
    header: false,
    blank_lines: "null",
    null_values: [],
    ragged_rows: "pad",
    encoding: itemOf(dialect, "encoding"),
    record_terminator: itemOf(dialect, "record_terminator"),
  };
  const columns = [{ name: "line", from: 0, type: "string" }];
  const mapping = { table: "sample", files: [stagedGlob(staged)], csv, columns };
  const config = { version: 1, title: "", mappings: [mapping] };
  const { rows } = await previewOf(staged.slug, { config, key: staged.key, limit: LINES_MAX });
  return (rows ?? []).map((row) => ((row as Cell[])[0] as string | null) ?? "");
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
  const records = lines.map((line) => (split(line, delimiter, quote)[0] ?? []).map((cell) => cell.trim()));
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
    if (isTable && hasNumbers && isTitle) return at;
  }
  return undefined;
}
