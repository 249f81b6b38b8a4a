import { EllipsisVertical, Info, Minimize } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { DataAnswer, PanelResult, PanelRows, Row } from "../../api/types";
import { Button, IconButton } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Grid, rowsInMemory } from "../../components/grid";
import { Menu } from "../../components/menu";
import { plainProblem } from "../../boards/repair";
import { MessageText } from "../../components/message-text";
import { Failed } from "../../components/states";
import { toast } from "../../components/toasts";
import { count, counted } from "../../format/number";
import { routes, RUN_IMMEDIATELY } from "../../browser/routes";
import { saveFile } from "../../browser/save";
import { csvOf, fileNameOf, pivotCsv } from "./csv";
import type { DashboardDoc, Panel, Param } from "./document";
import { usedParams, withLiterals } from "./literals";
import { loadPanels, panels, panelsFailure } from "./loaded-panels";
import { Markdown } from "./markdown";
import { pngOf } from "./png";
import { type Range, shiftOf } from "../../boards/presets";
import type { PanelPlacement } from "./placement";
import { chosenText, optionsOf } from "./values";

/** Default heights in pixels; Markdown fits its content. */
export const HEIGHTS: Record<Panel["type"], number> = {
  kpi: 128,
  line: 320,
  area: 320,
  bar: 320,
  pie: 320,
  scatter: 340,
  heatmap: 320,
  table: 340,
  // Twelve months and their total.
  pivot: 500,
  markdown: 0,
  broken: 128,
};

/** Above what fills the screen: the dashboard's title, which is outside of it, and the way back. */
export const FullScreenHead = ({ title }: { title: string }) => (
  <div class="dash-full-head">
    <p class="grow cut">{title}</p>
    <Button icon={<Minimize />} onClick={() => void globalThis.document.exitFullscreen()}>
      Exit full screen
    </Button>
  </div>
);

interface FrameProps {
  slug: string;
  place: PanelPlacement;
  document: DashboardDoc;
  panel: Panel;
  answer: DataAnswer | undefined;
  /** New data is loading. */
  busy: boolean;
  /** A newer document isn't stored or loaded yet. */
  pending?: boolean;
  /** Additional classes. */
  look?: string;
  /** Controls of the editor, in place of the menu. */
  tools?: { start: ComponentChildren; end: ComponentChildren; corner: ComponentChildren };
}

const failedOf = (result: PanelResult | null | undefined) => (result && "error" in result ? result : undefined);

export function PanelFrame({
  slug,
  document,
  panel,
  place,
  answer,
  busy,
  pending = false,
  look = "",
  tools,
}: FrameProps) {
  const [expanded, setExpanded] = useState(false);
  const [viewed, setViewed] = useState(false);
  const id = useId();
  const result = answer?.panels[panel.id];
  const failed = failedOf(result);
  const rows = result && !("error" in result) ? result : undefined;
  const height = panel.height ?? HEIGHTS[panel.type];
  const name = panel.title || panel.id;
  return (
    <section
      class={`dash-panel dash-${panel.type} ${place.half ? "narrow" : ""} ${look}`}
      style={{ "--span": place.span, order: place.order, minHeight: `${height}px` }}
      aria-labelledby={id}
      aria-busy={busy || (panel.type !== "markdown" && !answer)}
      data-panel={panel.id}
    >
      <FullScreenHead title={document.title} />
      <header
        class={
          !tools && panel.type === "markdown" && !panel.title && !panel.description ? "for-readers" : "dash-panel-head"
        }
      >
        {tools?.start}
        <h2 id={id} class={`grow ${panel.title ? "" : "for-readers"}`} title={name}>
          {name}
        </h2>
        {panel.description && (
          <IconButton
            label={`About ${name}`}
            icon={<Info />}
            aria-expanded={expanded}
            onClick={() => setExpanded(!expanded)}
          />
        )}
        {tools?.end}
        {rows && !tools && (
          <PanelMenu {...{ slug, document, panel, rows, name }} answer={answer} onView={() => setViewed(true)} />
        )}
      </header>
      {expanded && <p class="secondary">{panel.description}</p>}
      <div class="dash-panel-body">
        <Body
          panel={panel}
          failed={failed}
          rows={rows}
          answer={answer}
          document={document}
          waits={(busy || pending) && !result}
        />
      </div>
      {rows?.truncated && (
        <p class="dash-panel-note">
          Showing the first {counted(rows.rows.length, "row")} of the query
          {rows.limit_reason === "bytes" ? " (size limit)" : ""}.
        </p>
      )}
      {tools?.corner}
      {viewed && rows && <PanelData name={name} rows={rows} onClose={() => setViewed(false)} />}
    </section>
  );
}

interface BodyProps {
  panel: Panel;
  failed: { error: string; message: string } | undefined;
  rows: PanelRows | undefined;
  answer: DataAnswer | undefined;
  document: DashboardDoc;
  /** The panel is newer than the data. */
  waits: boolean;
}

function Body({ panel, failed, rows, answer, document, waits }: BodyProps) {
  if (panel.type === "markdown") return <Markdown tokens={panel.tokens} />;
  if (waits && panel.type !== "broken") return <div class="dash-panel-waits" role="status" aria-label="Loading" />;
  if (failed || panel.type === "broken" || (answer && !rows)) {
    return (
      <div class="dash-panel-failed" role="alert">
        <strong>Couldn't load this panel</strong>
        <p>
          <MessageText text={failed ? plainProblem(failed.message) : "The panel has no query."} />
        </p>
      </div>
    );
  }
  if (!rows) return <div class="dash-panel-waits" role="status" aria-label="Loading" />;
  if (rows.rows.length === 0 && panel.type !== "kpi")
    return <p class="dash-panel-empty">No rows match the current filters.</p>;
  return <Shown panel={panel} rows={rows} shift={shiftFor(panel, document, answer)} />;
}

function Shown({ panel, rows, shift }: { panel: Panel; rows: PanelRows; shift: number | undefined }) {
  const loaded = panels.value;
  const failure = panelsFailure.value;
  useEffect(() => {
    // A failed load waits for a retry.
    if (panelsFailure.peek() === undefined) void loadPanels();
  }, []);
  if (!loaded)
    return failure === undefined ? (
      <div class="dash-panel-waits" />
    ) : (
      <Failed title="Couldn't load this panel" error={failure} onRetry={() => void loadPanels()} />
    );
  const { KpiPanel, ChartPanel, TablePanel, PivotPanel } = loaded;
  switch (panel.type) {
    case "kpi":
      return <KpiPanel panel={panel} result={rows} />;
    case "line":
    case "area":
    case "bar":
    case "pie":
    case "scatter":
    case "heatmap":
      return <ChartPanel panel={panel} result={rows} shift={shift} />;
    case "table":
      return <TablePanel panel={panel} result={rows} />;
    case "pivot":
      return <PivotPanel panel={panel} result={rows} />;
    case "markdown":
    case "broken":
      return null;
  }
}

/** Days between the compared period and the current one. */
function shiftFor(panel: Panel, document: DashboardDoc, answer: DataAnswer | undefined): number | undefined {
  if (!("compare" in panel) || !panel.compare) return undefined;
  const sql = document.queries.get(panel.query) ?? "";
  const taken = usedParams(sql, document.params).filter(({ type }) => type === "date_range");
  const range = answer?.params[panel.compareParam ?? taken[0]?.name ?? ""] as Range | null | undefined;
  return range ? shiftOf(range, panel.compare) : undefined;
}

const CHARTED = new Set<Panel["type"]>(["line", "area", "bar", "pie", "scatter", "heatmap"]);

const frameOf = (id: string) => globalThis.document.querySelector<HTMLElement>(`[data-panel="${CSS.escape(id)}"]`);

/** The chosen filters that a statement uses: `Region: West, Period: Jan 1, 2025 to …`. */
const chosenFilters = (sql: string, params: readonly Param[], answer: DataAnswer | undefined): string =>
  usedParams(sql, params)
    .map((param) => {
      const { name, title } = param;
      return { title, chosen: chosenText(answer?.params[name], param, optionsOf(answer?.options[name])) };
    })
    .filter(({ chosen }) => chosen !== "any")
    .map(({ title, chosen }) => `${title}: ${chosen}`)
    .join(", ");

function PanelMenu({
  slug,
  document,
  panel,
  rows,
  name,
  answer,
  onView,
}: {
  slug: string;
  document: DashboardDoc;
  panel: Panel;
  rows: PanelRows;
  name: string;
  answer: DataAnswer | undefined;
  onView: () => void;
}) {
  const [, go] = useLocation();
  const sql = "query" in panel ? document.queries.get(panel.query) : undefined;
  const download = () => {
    const { columns, truncated } = rows;
    const cells = rows.rows as Row[];
    const text = panel.type === "pivot" ? pivotCsv(panel, columns, cells, truncated) : csvOf(columns, cells, panel);
    saveFile(new Blob([text], { type: "text/csv;charset=utf-8" }), fileNameOf(name, "csv"));
    toast.done(`${counted(rows.rows.length, "row")} of ${name} downloaded`);
  };
  const image = async () => {
    const frame = frameOf(panel.id);
    const png = frame && (await pngOf(frame, name, chosenFilters(sql ?? "", document.params, answer)));
    if (png) saveFile(png, fileNameOf(name, "png"));
    else toast.failed("Couldn't draw the image", new Error("the chart isn't drawn yet"));
  };
  return (
    <Menu
      label={`More actions for ${name}`}
      button={<EllipsisVertical />}
      class="icon-only"
      items={[
        { label: "View data", hint: counted(rows.rows.length, "row"), onSelect: onView },
        {
          label: "Open query",
          hint: "With current filters applied",
          disabled: !sql,
          onSelect: () => {
            if (!sql) return;
            const filled = withLiterals(sql.trim(), document.params, answer?.params ?? {});
            go(`~${routes.query(slug, { sql: filled })}`, { state: RUN_IMMEDIATELY });
          },
        },
        {
          label: "Download CSV",
          ...(rows.truncated ? { hint: `First ${count(rows.rows.length)} rows; open the query for all` } : {}),
          onSelect: download,
        },
        ...(CHARTED.has(panel.type) ? [{ label: "Download PNG", onSelect: () => void image() }] : []),
        { label: "Full screen", hint: "Esc closes", onSelect: () => void frameOf(panel.id)?.requestFullscreen() },
      ]}
    />
  );
}

function PanelData({ name, rows, onClose }: { name: string; rows: PanelRows; onClose: () => void }) {
  return (
    <Dialog title={name} kind="drawer" onClose={onClose}>
      <p class="secondary">
        {counted(rows.rows.length, "row")}
        {rows.truncated && ", the first of more"}
      </p>
      <div class="dash-data">
        <Grid label={`Data of ${name}`} columns={rows.columns} rows={rowsInMemory(rows.rows as Row[])} />
      </div>
    </Dialog>
  );
}
