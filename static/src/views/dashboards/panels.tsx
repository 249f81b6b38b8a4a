/** Content of panels, by type. */
import { ArrowDown, ArrowRight, ArrowUp } from "lucide-preact";
import { useMemo, useState } from "preact/hooks";
import type { Cell, PanelRows, Row } from "../../api/types";
import { Chart, type ChartField, type ChartSpec, type Compared } from "../../components/chart";
import { Grid, rowsInMemory, type GridColumn } from "../../components/grid";
import { written } from "../../format/values";
import type { Panel, PanelOf } from "./document";
import { kpiOf } from "./kpi";
import { pivotOf } from "./pivot";
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
  const shown = useMemo(() => {
    const wanted: ChartField[] =
      panel.columns.length > 0 ? panel.columns : result.columns.map(({ name }) => ({ field: name }));
    return wanted
      .map((field) => ({ field, at: result.columns.findIndex(({ name }) => name === field.field) }))
      .filter(({ at }) => at >= 0);
  }, [panel, result]);
  const columns = useMemo<GridColumn[]>(
    () =>
      shown.map(({ field, at }) => {
        const type = result.columns[at]?.type ?? "string";
        const format = (value: Cell) => written(value, field.format, type);
        return { name: field.title || field.field, type, ...(field.format ? { format } : {}) };
      }),
    [shown, result],
  );
  const rows = useMemo(() => {
    const cut = rowsOf(result).map((row) => shown.map(({ at }) => row[at] ?? null));
    return sortedRows(cut, columns, sort);
  }, [result, shown, columns, sort]);
  return (
    <Grid
      label={panel.title || panel.id}
      columns={columns}
      rows={useMemo(() => rowsInMemory(rows), [rows])}
      sort={sort}
      onSort={setSort}
      empty="No rows."
    />
  );
}

export function PivotPanel({ panel, result }: { panel: PanelOf<"pivot">; result: PanelRows }) {
  const pivot = useMemo(() => pivotOf(panel, result.columns, rowsOf(result)), [panel, result]);
  const height = Math.max(1, pivot.head.length);
  return (
    <div class="dash-pivot" tabIndex={0} role="region" aria-label={`${panel.title || panel.id}, scrolls`}>
      <table class="table">
        <thead>
          {(pivot.head.length > 0 ? pivot.head : [[]]).map((level, at) => (
            <tr key={at}>
              {at === 0 &&
                pivot.sides.map((name) => (
                  <th key={name} scope="col" rowSpan={height}>
                    {name}
                  </th>
                ))}
              {level.map(({ text, span }, index) => (
                <th key={index} scope={span > 1 ? "colgroup" : "col"} colSpan={span} class="num">
                  {text}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {pivot.rows.map((row, at) => (
            <tr key={at}>
              {row.side.map((text, index) => (
                <th key={index} scope="row" class={index < row.same ? "dash-pivot-same" : ""}>
                  {text}
                </th>
              ))}
              {row.cells.map((text, index) => (
                <td key={index} class="num">
                  {text === "null" ? <span class="dim">null</span> : text}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {pivot.notes.length > 0 && <p class="dim">{pivot.notes.join(" ")}</p>}
    </div>
  );
}
