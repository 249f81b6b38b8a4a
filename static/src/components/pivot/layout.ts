/** Lays out a pivot: columns down the side, columns across the top, measures below. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { isNaming } from "../../format/naming";
import { areDays, EMPTY, familyOf, numeric, plain, written } from "../../format/values";
import type { ChartField } from "../chart";

/** Columns of the result: those of `rows`, of `columns`, then the `values`. */
export interface PivotSpec {
  rows: ChartField[];
  columns: ChartField[];
  values: (ChartField & { aggregate: string | undefined })[];
  /** Adds a column and a row of totals, for measures that add up. */
  totals?: boolean;
}

/** A cell whose measure has no value. */
export const NO_VALUE = "–";
/** Label of totals. */
export const TOTAL = "Total";
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
  /** Number of columns of totals, at the end of each row. */
  totals: number;
  /** Row of totals; empty for a measure that doesn't add up. */
  foot: string[] | undefined;
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

/** Measures whose cells add up to that of all their rows. Averages, medians and distinct values don't. */
const isAdditive = ({ aggregate }: { aggregate: string | undefined }): boolean =>
  ["sum", "count"].includes(aggregate ?? "sum");

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** Exact sum of decimals and of integers of any size, as text; of other numbers the sum; null if there is none. */
function sumOf(values: (Cell | undefined)[]): Cell {
  const texts = values.filter((value) => numeric(value) !== null).map(plain);
  if (texts.length === 0) return null;
  if (!texts.every((text) => DECIMAL.test(text))) return texts.reduce((sum, text) => sum + Number(text), 0);
  const places = Math.max(...texts.map((text) => text.split(".")[1]?.length ?? 0));
  const scaled = (text: string) => {
    const [whole = "", part = ""] = text.split(".");
    return BigInt(whole + part.padEnd(places, "0"));
  };
  const sum = texts.reduce((sum, text) => sum + scaled(text), 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(places + 1, "0");
  return `${sum < 0n ? "-" : ""}${digits.slice(0, digits.length - places)}${places > 0 ? `.${digits.slice(-places)}` : ""}`;
}

/**
 * @param isCut whether the result has more rows, so that nothing can be added up
 * @param isPlain whether it is for programs: all of it, with measures as the result has them
 */
export function pivotOf(spec: PivotSpec, columns: ResultColumn[], rows: Row[], isCut = false, isPlain = false): Pivot {
  const [down, across] = [spec.rows.length, spec.columns.length];
  const first = down + across;
  const formats = columns.map(({ name, type }, at) => {
    const values = rows.slice(0, NAMING_ROWS).map((row) => row[at]);
    if (isNaming(name, type, values)) return "text";
    return familyOf(type) === "time" && areDays(rows.map((row) => row[at])) ? "date" : undefined;
  });
  const measured = (value: Cell | undefined, at: number, format: string | undefined) =>
    isPlain ? plain(value) : written(value, format ?? formats[at], columns[at]?.type);
  const formatted = (row: Row, at: number, format: string | undefined) => {
    if (at >= first) return row[at] === null && !isPlain ? NO_VALUE : measured(row[at], at, format);
    return row[at] === null ? EMPTY : written(row[at], format ?? formats[at], columns[at]?.type);
  };
  const sides = new Map<string, Row>();
  const tops = new Map<string, Row>();
  const cells = new Map<string, Row>();
  const [bySide, byTop] = [new Map<string, Row[]>(), new Map<string, Row[]>()];
  for (const row of rows) {
    const [side, top] = [key(row.slice(0, down)), key(row.slice(down, first))];
    if (!sides.has(side)) sides.set(side, row);
    if (!tops.has(top)) tops.set(top, row);
    cells.set(side + top, row);
    push(bySide, side, row);
    push(byTop, top, row);
  }
  const shownTops = [...tops]
    .sort(([, a], [, b]) => compare(a, b, down, first))
    .slice(0, isPlain ? undefined : COLUMNS_MAX);
  const shownSides = [...sides].slice(0, isPlain ? undefined : ROWS_MAX);
  const notes = [
    ...(shownTops.length < tops.size ? [`Showing the first ${COLUMNS_MAX} of ${tops.size} columns.`] : []),
    ...(shownSides.length < sides.size ? [`Showing the first ${ROWS_MAX} of ${sides.size} rows.`] : []),
  ];
  const additive = spec.totals && !isCut ? spec.values.flatMap((measure, at) => (isAdditive(measure) ? [at] : [])) : [];
  // Of all rows, also of those that aren't shown.
  const totalsOf = (of: Row[]) =>
    additive.map((at) => {
      const sum = sumOf(of.map((row) => row[first + at]));
      return sum === null ? "" : measured(sum, first + at, spec.values[at]?.format);
    });
  const hasSum = additive.length > 0 && tops.size > 1;
  let above: string[] = [];
  const body = shownSides.map(([side, row]) => {
    const names = spec.rows.map((field, at) => formatted(row, at, field.format));
    const differs = names.findIndex((name, at) => name !== above[at]);
    above = names;
    const values = shownTops.flatMap(([top]) => {
      const found = cells.get(side + top);
      return spec.values.map((measure, at) => (found ? formatted(found, first + at, measure.format) : ""));
    });
    return {
      side: names,
      cells: [...values, ...(hasSum ? totalsOf(bySide.get(side) ?? []) : [])],
      same: Math.max(0, differs),
    };
  });
  const foot =
    additive.length > 0 && sides.size > 1
      ? [
          ...shownTops.flatMap(([top]) => {
            const sums = totalsOf(byTop.get(top) ?? []);
            return spec.values.map((_, at) => sums[additive.indexOf(at)] ?? "");
          }),
          ...(hasSum ? totalsOf(rows) : []),
        ]
      : undefined;
  return {
    sides: spec.rows.map(({ field, title }) => title ?? field),
    head: headOf(
      spec,
      shownTops.map(([, row]) => row),
      formatted,
      hasSum ? additive : [],
    ),
    rows: body,
    totals: hasSum ? additive.length : 0,
    foot,
    notes,
  };
}

function push(lists: Map<string, Row[]>, name: string, row: Row): void {
  const list = lists.get(name);
  if (list) list.push(row);
  else lists.set(name, [row]);
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
  totals: number[],
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
  if (totals.length > 0)
    head.forEach((level, at) => {
      if (named && at === head.length - 1) level.push(...totals.map((one) => ({ text: measures[one] ?? "", span: 1 })));
      else level.push({ text: at === 0 ? TOTAL : "", span: totals.length });
    });
  return head;
}
