/** A chart as a panel of a dashboard. */
import type { ChartField } from "../../components/chart";
import {
  type ChartChoice,
  columnsOf,
  formatOf,
  hasHorizontalBars,
  measureTitle,
  namesOf,
  pivotOf,
  pointFormat,
  titleOf,
} from "./choice";

export interface PanelFields {
  id: string;
  title: string;
  query: string;
  width: number;
  height?: number;
}

type Field = string | { field: string; title?: string; format?: string };

const shortField = (one: ChartField): Field => (one.title || one.format ? one : one.field);

/** Widths of new panels, in columns. */
export const widthOf = ({ kind, by }: ChartChoice): number =>
  kind === "number" ? 3 : kind === "pie" ? 4 : kind === "table" || kind === "pivot" ? 12 : by?.grain ? 12 : 6;

/**
 * The entry under `panels`. `max`: the largest value of the measure, if known.
 */
export function panelOf(choice: ChartChoice, fields: PanelFields, max?: number): Record<string, unknown> {
  const { kind, more = [] } = choice;
  const names = namesOf(choice);
  const plain = choice.aggregate === "none";
  const format = plain ? choice.format : formatOf(choice, max);
  const measure: Field = plain
    ? format === undefined
      ? names.measure
      : { field: names.measure, format }
    : { field: names.measure, title: measureTitle(choice), ...(format ? { format } : {}) };
  // Without an aggregate, the format was chosen for all values.
  const others = more.map((name): Field => (format === undefined ? name : { field: name, format }));
  const points = pointFormat(choice, format);
  const { width, height, ...start } = fields;
  const size = { width, ...(height === undefined ? {} : { height }) };
  const x = names.by ?? "";
  const series = names.split === undefined ? {} : { series: names.split };
  switch (kind) {
    case "number":
      return { ...start, type: "kpi", value: { field: names.measure, ...(format ? { format } : {}) }, ...size };
    case "table": {
      const columns = columnsOf(choice, format);
      return { ...start, type: "table", ...(columns ? { columns: columns.map(shortField) } : {}), ...size };
    }
    case "pivot": {
      const { rows = [], columns = [], values = [], totals } = pivotOf(choice, format) ?? {};
      const across = columns.length > 0 ? { columns: columns.map(shortField) } : {};
      return {
        ...start,
        type: "pivot",
        rows: rows.map(shortField),
        ...across,
        values,
        ...(totals ? { totals } : {}),
        ...size,
      };
    }
    case "pie":
      return { ...start, type: "pie", x, y: measure, ...size };
    case "scatter":
      return {
        ...start,
        type: "scatter",
        x,
        y: points ? { field: names.measure, format: points } : names.measure,
        ...series,
        ...size,
      };
    case "heatmap":
      return { ...start, type: "heatmap", x, y: names.split ?? x, value: measure, ...size };
    case "stacked":
      return { ...start, type: "bar", x, y: [measure, ...others], ...series, stacked: true, ...size };
    case "area":
      return {
        ...start,
        type: "area",
        x,
        y: [measure, ...others],
        ...series,
        ...(names.split ? { stacked: true } : {}),
        ...size,
      };
    case "line":
    case "bar":
      return {
        ...start,
        type: kind,
        x,
        y: [measure, ...others],
        ...series,
        ...(hasHorizontalBars(choice) ? { horizontal: true } : {}),
        ...size,
      };
  }
}

/** A name of a query or panel from words: `total_revenue_per_month`. */
export function nameFrom(text: string, taken: Iterable<string>): string {
  const known = new Set(taken);
  const plain = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[^a-z]+/, "")
    .slice(0, 56)
    .replace(/_+$/, "");
  const base = plain || "chart";
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? base : `${base}_${n}`;
    if (!known.has(name)) return name;
  }
}

export { titleOf };
