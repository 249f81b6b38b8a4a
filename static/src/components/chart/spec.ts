import type { ResultColumn, Row } from "../../api/types";

export type ChartType = "line" | "area" | "bar" | "pie" | "scatter" | "heatmap";

/** A chart field: column, title and number format (as dashboards name them). */
export interface ChartField {
  field: string;
  title?: string;
  format?: string;
}

export interface ChartSpec {
  type: ChartType;
  x: ChartField;
  /** Heatmap: the column of the y axis. */
  y: ChartField[];
  /** Column that splits rows into series. */
  series?: string;
  stacked?: boolean;
  horizontal?: boolean;
  donut?: boolean;
  /** Draws lines across missing values. */
  connectNulls?: boolean;
  /** Scatter: point size; heatmap: colour. */
  value?: ChartField;
  /** Scatter: column with point names. */
  point?: string;
}

/** Data of another period, drawn paler in the background. */
export interface Compared {
  rows: Row[];
  /** Offset between the periods, in days. */
  days: number;
  /** `the year before`. */
  title: string;
}

export interface ChartProps {
  /** Accessible name. */
  label: string;
  spec: ChartSpec;
  columns: ResultColumn[];
  rows: Row[];
  /** In pixels. */
  height?: number;
  /** Fills the height of its parent. */
  fill?: boolean;
  compared?: Compared;
}
