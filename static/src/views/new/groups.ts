/** Files of one choice or drop, by their shape: each group becomes a table. */
import { stemOf } from "../../uploads/source-names";
import { firstLine } from "./sample";

export interface Group {
  /** Stable while the choice stays. */
  id: number;
  files: File[];
}

const CELL_ENDS = /[,;\t|]/;
const VALUE = /^"?[-+($€£]*\d/;

/** What files of one table have in common in their first line: the header, or the number of cells where it is data. */
export function shapeKey(line: string): string {
  const text = line.replace(/^(\u00ef\u00bb\u00bf|\u00ff\u00fe|\u00fe\u00ff)/, "").replaceAll("\u0000", "");
  const cells = text.split(CELL_ENDS);
  if (cells.some((cell) => VALUE.test(cell.trim()))) return `${cells.length} cells`;
  return cells
    .map((cell) =>
      cell
        .trim()
        .replace(/^"(.*)"$/, "$1")
        .toLowerCase(),
    )
    .join("\u001f");
}

/** Files by their shape, in the order of the choice. A file whose first line can't be read here goes with the first. */
export async function groupsOf(files: readonly File[]): Promise<Group[]> {
  const groups = new Map<string, File[]>();
  const unknown: File[] = [];
  for (const file of files) {
    const line = files.length > 1 ? await firstLine(file) : "";
    if (line === undefined) {
      unknown.push(file);
      continue;
    }
    const key = shapeKey(line);
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
  const [first] = groups.values();
  if (first) first.push(...unknown);
  else groups.set("", unknown);
  return [...groups.values()].map((own, id) => ({ id, files: own }));
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
