/** Content of panels, by type. */
import { ArrowDown, ArrowRight, ArrowUp } from "lucide-preact";
import { useMemo, useState } from "preact/hooks";
import type { PanelRows, Row } from "../../api/types";
import { Chart, type ChartSpec, type Compared } from "../../components/chart";
import { fieldGrid, Grid, rowsInMemory } from "../../components/grid";
import { Pivot } from "../../components/pivot";
import { counted } from "../../format/number";
import type { Panel, PanelOf } from "./document";
import { kpiOf } from "./kpi";
import { sortedRows, type SortKeys } from "./sort";

const rowsOf = (result: PanelRows): Row[] => result.rows as Row[];

const DIRECTION_ICONS = { up: ArrowUp, down: ArrowDown, same: ArrowRight, unknown: undefined };

export function KpiPanel({ panel, result }: { panel: PanelOf<"kpi">; result: PanelRows }) {
  const { text, change } = kpiOf(panel, result);
  const Icon = change && DIRECTION_ICONS[change.way];
  return (
    <div class="dash-kpi">
      <p class="dash-kpi-value" title={text}>
        {text}
      </p>
      {change && (
        <p class={`dash-kpi-change ${change.tone}`}>
          {Icon && <Icon aria-hidden="true" />}
          <span>{change.text}</span>
        </p>
      )}
    </div>
  );
}

type ChartedPanel = Exclude<Panel, { type: "kpi" | "table" | "pivot" | "markdown" | "broken" }>;

/** Chart spec of a panel. */
function specOf(panel: ChartedPanel): ChartSpec {
  switch (panel.type) {
    case "line":
    case "area":
    case "bar": {
      const { stacked, horizontal, connectNulls, series } = panel;
      const spec: ChartSpec = {
        type: panel.type,
        x: { field: panel.x },
        y: panel.y,
        stacked,
        horizontal,
        connectNulls,
      };
      return series ? { ...spec, series } : spec;
    }
    case "pie":
      return { type: "pie", x: { field: panel.x }, y: [panel.y], donut: panel.donut };
    case "scatter":
      return {
        type: "scatter",
        x: panel.x,
        y: [panel.y],
        ...(panel.series ? { series: panel.series } : {}),
        ...(panel.size ? { value: { field: panel.size } } : {}),
        ...(panel.label ? { point: panel.label } : {}),
      };
    case "heatmap":
      return { type: "heatmap", x: { field: panel.x }, y: [{ field: panel.y }], value: panel.value };
  }
}

interface ChartPanelProps {
  panel: ChartedPanel;
  result: PanelRows;
  /** Days between the compared period and the current one. */
  shift: number | undefined;
}

export function ChartPanel({ panel, result, shift }: ChartPanelProps) {
  const spec = useMemo(() => specOf(panel), [panel]);
  const previous = result.previous;
  const compare = "compare" in panel ? panel.compare : undefined;
  const compared = useMemo<Compared | undefined>(() => {
    if (!previous || "error" in previous || shift === undefined) return undefined;
    const title = compare === "previous_year" ? "previous year" : "previous period";
    return { rows: rowsOf(previous), days: shift, title };
  }, [previous, shift, compare]);
  return (
    <Chart
      label={panel.title || panel.id}
      spec={spec}
      columns={result.columns}
      rows={rowsOf(result)}
      fill
      {...(compared ? { compared } : {})}
    />
  );
}

export function TablePanel({ panel, result }: { panel: PanelOf<"table">; result: PanelRows }) {
  const [sort, setSort] = useState<SortKeys>([]);
  const grid = useMemo(() => fieldGrid(panel.columns, result.columns, rowsOf(result)), [panel, result]);
  const rows = useMemo(() => sortedRows(grid.rows, grid.columns, sort), [grid, sort]);
  return (
    <>
      <Grid
        label={panel.title || panel.id}
        columns={grid.columns}
        rows={useMemo(() => rowsInMemory(rows), [rows])}
        sort={sort}
        onSort={setSort}
        empty="No rows."
      />
      {/* On paper, those beyond the panel's height are missing. */}
      {!result.truncated && <small class="dash-printed">{counted(rows.length, "row")} in all</small>}
    </>
  );
}

export const PivotPanel = ({ panel, result }: { panel: PanelOf<"pivot">; result: PanelRows }) => (
  <Pivot
    label={panel.title || panel.id}
    spec={panel}
    columns={result.columns}
    rows={rowsOf(result)}
    isCut={result.truncated}
  />
);
