import type { ResultColumn, Row } from "../../api/types";

export type ChartType = "line" | "area" | "bar" | "pie" | "scatter" | "heatmap";

/** A field of a chart: the column, its words, and how its numbers are written (formats as dashboards name them). */
export interface ChartField {
  field: string;
  title?: string;
  format?: string;
}

export interface ChartSpec {
  type: ChartType;
  x: ChartField;
  /** Heatmap: the column down the side. */
  y: ChartField[];
  /** A column whose values split the rows. */
  series?: string;
  stacked?: boolean;
  horizontal?: boolean;
  donut?: boolean;
  /** Bridges what is missing. */
  connectNulls?: boolean;
  /** Scatter: the size of the points; heatmap: their colour. */
  value?: ChartField;
  /** Scatter: a column that names the points. */
  point?: string;
}

/** The same for other days, drawn paler behind. */
export interface Compared {
  rows: Row[];
  /** From those days to these, in days. */
  days: number;
  /** `the year before`. */
  title: string;
}

export interface ChartProps {
  /** What the chart shows, for screen readers. */
  label: string;
  spec: ChartSpec;
  columns: ResultColumn[];
  rows: Row[];
  /** In pixels. */
  height?: number;
  /** Takes its parent's height. */
  fill?: boolean;
  compared?: Compared;
}
