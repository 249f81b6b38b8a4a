import type { Cell, ResultColumn, Row } from "../../api/types";
import { pivotOf, TOTAL, type PivotSpec } from "../../components/pivot/layout";
import { areDays, dayOnly, familyOf, plain } from "../../format/values";

/** A cell according to RFC 4180. */
function cell(value: Cell): string {
  const text = plain(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The titles that a panel shows for fields. */
function titlesOf(panel: object): Map<string, string> {
  const fields = Object.values(panel).flat() as unknown[];
  return new Map(
    fields.flatMap((one) => {
      const { field, title } = (one ?? {}) as { field?: unknown; title?: unknown };
      return typeof field === "string" && typeof title === "string" && title !== "" ? [[field, title]] : [];
    }),
  );
}

const linesOf = (rows: readonly string[][]): string => rows.map((row) => `${row.join(",")}\r\n`).join("");

/** A pivot as it is shown, whole, with measures as numbers; the names of a column across are in one line. */
export function pivotCsv(spec: PivotSpec, columns: ResultColumn[], rows: Row[], isCut: boolean): string {
  const { sides, head, rows: body, foot } = pivotOf(spec, columns, rows, isCut, true);
  const levels = head.map((level) => level.flatMap(({ text, span }) => Array<string>(span).fill(text)));
  const across = (levels.at(-1) ?? []).map((_, at) => levels.flatMap((level) => level[at] || []).join(" / "));
  const lines = [
    [...sides, ...across],
    ...body.map(({ side, cells }) => [...side, ...cells]),
    ...(foot ? [[TOTAL, ...sides.slice(1).map(() => ""), ...foot]] : []),
  ];
  return linesOf(lines.map((line) => line.map(cell)));
}

/** A file's name from a title and the day. */
export const fileNameOf = (title: string, ending: string): string => {
  const day = new Date();
  const parts = [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((one) => String(one).padStart(2, "0"));
  return `${title.replace(/[\\/:*?"<>|\s]+/g, " ").trim()} ${parts.join("-")}.${ending}`;
};

/** The columns have the titles that the panel shows. Times that are all midnights are written as days. */
export function csvOf(columns: ResultColumn[], rows: Row[], panel: object = {}): string {
  const titles = titlesOf(panel);
  const isDay = columns.map(({ type }, at) => familyOf(type) === "time" && areDays(rows.map((row) => row[at])));
  const lines = [
    columns.map(({ name }) => cell(titles.get(name) ?? name)),
    ...rows.map((row) => row.map((value, at) => cell(isDay[at] ? dayOnly(value) : value))),
  ];
  return linesOf(lines);
}
