/** Lays out a pivot: columns down the side, columns across the top, measures below. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { isNaming } from "../../format/naming";
import { plain, written } from "../../format/values";
import type { ChartField } from "../chart";

/** Columns of the result: those of `rows`, of `columns`, then the `values`. */
export interface PivotSpec {
  rows: ChartField[];
  columns: ChartField[];
  values: (ChartField & { aggregate: string | undefined })[];
}

const ROWS_MAX = 1_000;
const COLUMNS_MAX = 200;

interface Span {
  text: string;
  span: number;
}

interface Pivot {
  /** Names of the side columns. */
  sides: string[];
  /** Header rows from the top; the last has the measures if there are several. */
  head: Span[][];
  rows: { side: string[]; cells: string[]; /** Number of cells equal to the row above. */ same: number }[];
  notes: string[];
}

const AGGREGATES: Record<string, string> = {
  sum: "Sum",
  avg: "Average",
  min: "Min",
  max: "Max",
  median: "Median",
  count: "Count",
  count_distinct: "Distinct values",
  first: "First",
  last: "Last",
};

/** Default title of a measure. */
const measureName = ({
  title,
  field,
  aggregate,
}: {
  title?: string;
  field: string;
  aggregate: string | undefined;
}): string => title || `${AGGREGATES[aggregate ?? "sum"] ?? aggregate ?? ""} of ${field}`;

const key = (cells: (Cell | undefined)[]): string => JSON.stringify(cells.map((cell) => cell ?? null));

/** Rows used to detect identifiers. */
const NAMING_ROWS = 60;

export function pivotOf(spec: PivotSpec, columns: ResultColumn[], rows: Row[]): Pivot {
  const [down, across] = [spec.rows.length, spec.columns.length];
  const first = down + across;
  const formats = columns.map(({ name, type }, at) =>
    isNaming(
      name,
      type,
      rows.slice(0, NAMING_ROWS).map((row) => row[at]),
    )
      ? "text"
      : undefined,
  );
  const formatted = (row: Row, at: number, format: string | undefined) =>
    row[at] === null ? "null" : written(row[at], format ?? formats[at], columns[at]?.type);
  const sides = new Map<string, Row>();
  const tops = new Map<string, Row>();
  const cells = new Map<string, Row>();
  for (const row of rows) {
    const [side, top] = [key(row.slice(0, down)), key(row.slice(down, first))];
    if (!sides.has(side)) sides.set(side, row);
    if (!tops.has(top)) tops.set(top, row);
    cells.set(side + top, row);
  }
  const shownTops = [...tops].sort(([, a], [, b]) => compare(a, b, down, first)).slice(0, COLUMNS_MAX);
  const shownSides = [...sides].slice(0, ROWS_MAX);
  const notes = [
    ...(shownTops.length < tops.size ? [`Showing the first ${COLUMNS_MAX} of ${tops.size} columns.`] : []),
    ...(shownSides.length < sides.size ? [`Showing the first ${ROWS_MAX} of ${sides.size} rows.`] : []),
  ];
  let above: string[] = [];
  const body = shownSides.map(([side, row]) => {
    const names = spec.rows.map((field, at) => formatted(row, at, field.format));
    const differs = names.findIndex((name, at) => name !== above[at]);
    above = names;
    const values = shownTops.flatMap(([top]) => {
      const found = cells.get(side + top);
      return spec.values.map((measure, at) => (found ? formatted(found, first + at, measure.format) : ""));
    });
    return { side: names, cells: values, same: Math.max(0, differs) };
  });
  return {
    sides: spec.rows.map(({ field, title }) => title ?? field),
    head: headOf(
      spec,
      shownTops.map(([, row]) => row),
      formatted,
    ),
    rows: body,
    notes,
  };
}

/** Sorts the columns across by value, whatever the row order. */
function compare(a: Row, b: Row, from: number, to: number): number {
  for (let at = from; at < to; at += 1) {
    const [left, right] = [a[at] ?? null, b[at] ?? null];
    if (left === right) continue;
    if (left === null) return 1;
    if (right === null) return -1;
    if (typeof left === "number" && typeof right === "number") return left - right;
    return order.compare(plain(left), plain(right));
  }
  return 0;
}
const order = new Intl.Collator(undefined, { numeric: true });

function headOf(
  spec: PivotSpec,
  tops: Row[],
  formatted: (row: Row, at: number, format: string | undefined) => string,
): Span[][] {
  const measures = spec.values.map(measureName);
  const head: Span[][] = spec.columns.map(() => []);
  let above: string[] = [];
  for (const row of tops) {
    const names = spec.columns.map((field, at) => formatted(row, spec.rows.length + at, field.format));
    const differs = names.findIndex((name, at) => name !== above[at]);
    names.forEach((text, level) => {
      const last = head[level]?.at(-1);
      if (last && differs > level) last.span += measures.length;
      else head[level]?.push({ text, span: measures.length });
    });
    above = names;
  }
  const named = measures.length > 1 || spec.columns.length === 0 || spec.values[0]?.title;
  if (named) head.push(tops.flatMap(() => measures.map((text) => ({ text, span: 1 }))));
  return head;
}
