/** Files of one choice or drop, by their shape: each group becomes a table. */
import { stemOf } from "../../uploads/source-names";
import { firstLine } from "./sample";

export interface Group {
  /** Stable while the choice stays. */
  id: number;
  files: File[];
}

const DELIMITERS = [",", ";", "\t", "|"] as const;
const VALUE = /^"?[-+($€£]*\d/;

interface FirstLine {
  delimiter: string;
  /** Number of cells. */
  width: number;
  /** Names in the header, in lower case and in order; undefined where the line is data. */
  header: string[] | undefined;
}

/** What files of one table have in common in their first line: a table has one delimiter. */
export function readFirstLine(line: string): FirstLine {
  const text = line.replace(/^(\u00ef\u00bb\u00bf|\u00ff\u00fe|\u00fe\u00ff)/, "").replaceAll("\u0000", "");
  const unquoted = text.replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map((sign) => unquoted.split(sign).length);
  const delimiter = DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
  const cells = text.split(delimiter).map((cell) => cell.trim());
  const names = cells.map((cell) => cell.replace(/^"(.*)"$/, "$1").toLowerCase());
  return { delimiter, width: cells.length, header: cells.some((cell) => VALUE.test(cell)) ? undefined : names };
}

function isSameShape(one: FirstLine, other: FirstLine): boolean {
  if (one.delimiter !== other.delimiter || one.width !== other.width) return false;
  return one.header?.join("\u001f") === other.header?.join("\u001f");
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

interface Shape {
  line: FirstLine;
  series: string;
  files: File[];
}

/** Whether files of one series have most columns in common: later ones may have more. */
function isSimilar(one: Shape, other: Shape): boolean {
  if (one.line.delimiter !== other.line.delimiter || one.series !== other.series) return false;
  const [names, others] = [new Set(one.line.header), new Set(other.line.header)];
  const shared = [...names].filter((name) => others.has(name)).length;
  return shared > 0 && shared * 2 >= Math.max(names.size, others.size);
}

/**
 * Files by their shape, in the order of the choice. A file with more or fewer columns belongs to its series; one whose first
 * line can't be read here goes with the first.
 */
export async function groupsOf(files: readonly File[]): Promise<Group[]> {
  const shapes: Shape[] = [];
  const unknown: File[] = [];
  for (const file of files) {
    const line = files.length > 1 ? await firstLine(file) : "";
    if (line === undefined) {
      unknown.push(file);
      continue;
    }
    const shape: Shape = { line: readFirstLine(line), series: seriesOf(file.name), files: [file] };
    const known = shapes.find((one) => isSameShape(one.line, shape.line) || isSimilar(one, shape));
    if (known) known.files.push(file);
    else shapes.push(shape);
  }
  const [first] = shapes;
  if (first) first.files.push(...unknown);
  else if (unknown.length > 0) return [{ id: 0, files: unknown }];
  return shapes.map(({ files: own }, id) => ({ id, files: own }));
}

/** A name for the table of several files: what their names have in common. */
export function commonStem(files: readonly { name: string }[]): string {
  const stems = files.map(({ name }) => stemOf(name));
  const [first = "data", ...others] = stems;
  if (others.length === 0) return first;
  let end = first.length;
  for (const other of others) {
    let at = 0;
    while (at < end && first[at]?.toLowerCase() === other[at]?.toLowerCase()) at += 1;
    end = at;
  }
  const common = first
    .slice(0, end)
    .replace(/[\d\W_]*$/u, "")
    .replace(/[\s_.-]+(part|q|kw|week|month|year)$/i, "");
  return common.length >= 2 ? common : first;
}
