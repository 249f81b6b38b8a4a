/** Files of one choice or drop, by their shape: each group becomes a table. Its files may have several formats. */
import { seriesOf, stemOf } from "../../uploads/source-names";
import { readHead, type FileHead } from "../../uploads/file-head";
import { firstLines } from "../../uploads/sample";

export interface Group {
  /** Stable while the choice stays. */
  id: number;
  files: File[];
  /** What tells the format of a file apart from those of the others; the same text for the same format. */
  formats: ReadonlyMap<File, string>;
}

const sortedText = (names: readonly string[]): string => [...names].sort().join("\u001f");

function isSameShape(one: FileHead, other: FileHead): boolean {
  if (one.width !== other.width) return false;
  // Columns are read by their names, in any order.
  if (one.header && other.header) return sortedText(one.header) === sortedText(other.header);
  return one.header === other.header && one.delimiter === other.delimiter;
}

interface Shape {
  head: FileHead;
  series: string;
  files: File[];
  formats: Map<File, string>;
}

/** Whether files of one series have most columns in common: later ones may have more. */
function isSimilar(one: Shape, other: Shape): boolean {
  if (one.series !== other.series || !one.head.header !== !other.head.header) return false;
  const [names, others] = [new Set(one.head.header), new Set(other.head.header)];
  const shared = [...names].filter((name) => others.has(name)).length;
  return shared > 0 && shared * 2 >= Math.max(names.size, others.size);
}

/**
 * Files by their shape, in the order of the choice. A file with more or fewer columns belongs to its series; one whose first
 * lines can't be read here goes with the first.
 */
export async function groupsOf(files: readonly File[]): Promise<Group[]> {
  const shapes: Shape[] = [];
  const unknown: File[] = [];
  for (const file of files) {
    const start = files.length > 1 ? await firstLines(file) : { lines: [], encoding: "" };
    if (start === undefined) {
      unknown.push(file);
      continue;
    }
    const head = readHead(start.lines);
    const format = JSON.stringify([head.delimiter, head.before, start.encoding]);
    const shape: Shape = { head, series: seriesOf(file.name), files: [file], formats: new Map([[file, format]]) };
    const known = shapes.find((one) => isSameShape(one.head, head) || isSimilar(one, shape));
    if (known) {
      known.files.push(file);
      known.formats.set(file, format);
    } else shapes.push(shape);
  }
  const [first] = shapes;
  if (first) first.files.push(...unknown);
  else if (unknown.length > 0) return [{ id: 0, files: unknown, formats: new Map() }];
  return shapes.map(({ files: own, formats }, id) => ({ id, files: own, formats }));
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
  if (common.length >= 2) return common;
  const series = files.map(({ name }) => seriesOf(name));
  return ofMost(series.map((one) => [one])) ?? ofMost(series.map((one) => one.split(" "))) ?? first;
}

/** What more than half of the lists have. */
function ofMost(lists: readonly (readonly string[])[]): string | undefined {
  const counts = new Map<string, number>();
  for (const one of lists.flatMap((list) => [...new Set(list)])) counts.set(one, (counts.get(one) ?? 0) + 1);
  const [most] = [...counts].sort(([, one], [, other]) => other - one);
  return most && most[0].length >= 2 && most[1] * 2 > lists.length ? most[0] : undefined;
}
