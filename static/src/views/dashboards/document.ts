/**
 * Parses a dashboard for its view.
 *
 * Invariant: only the service validates. Missing or invalid parts become defaults or a broken panel, so that one
 * panel never breaks the others.
 */
import { GRID_COLUMNS, PANEL_HEIGHT_PX_MAX, PANEL_HEIGHT_PX_MIN, PANEL_KINDS } from "../../api/rules";
import { asFailure } from "../../api/failure";
import type { Tokens, TokensList } from "marked";
import type { ChartField } from "../../components/chart";

export type Scalar = string | number | boolean;
export type Compare = "previous_period" | "previous_year";

interface PanelBase {
  id: string;
  title: string;
  description: string;
  /** Width in columns of 12. */
  width: number;
  height: number | undefined;
}

export interface Measure extends ChartField {
  aggregate: string | undefined;
}

interface QueryPanelBase extends PanelBase {
  query: string;
}

interface Lines extends QueryPanelBase {
  x: string;
  y: ChartField[];
  series: string | undefined;
  format: string | undefined;
  stacked: boolean;
  horizontal: boolean;
  connectNulls: boolean;
  compare: Compare | undefined;
  compareParam: string | undefined;
}

export type Panel =
  | (QueryPanelBase & {
      type: "kpi";
      value: Measure;
      compare: Compare | undefined;
      compareParam: string | undefined;
      better: "higher" | "lower" | "neither";
    })
  | (Lines & { type: "line" | "area" | "bar" })
  | (QueryPanelBase & { type: "pie"; x: string; y: ChartField; donut: boolean })
  | (QueryPanelBase & {
      type: "scatter";
      x: ChartField;
      y: ChartField;
      series: string | undefined;
      size: string | undefined;
      label: string | undefined;
    })
  | (QueryPanelBase & { type: "heatmap"; x: string; y: string; value: ChartField })
  | (QueryPanelBase & { type: "table"; columns: ChartField[] })
  | (QueryPanelBase & {
      type: "pivot";
      rows: ChartField[];
      columns: ChartField[];
      values: Measure[];
      totals: boolean;
    })
  | (PanelBase & { type: "markdown"; text: string; tokens: TokensList | Tokens.Generic[] })
  /** The document says something else here; the service's answer says what. */
  | (PanelBase & { type: "broken" });

export type PanelOf<T extends Panel["type"]> = Extract<Panel, { type: T }>;

type PanelKind = (typeof PANEL_KINDS)[number];

interface ParamBase {
  name: string;
  title: string;
  description: string;
}

export interface Choice {
  value: Scalar;
  label: string;
}

export type Param =
  | (ParamBase & { type: "text"; placeholder: string })
  | (ParamBase & {
      type: "number";
      min: number | undefined;
      max: number | undefined;
      step: number | undefined;
      integer: boolean;
    })
  /** Without `options` they come with the data. */
  | (ParamBase & { type: "select"; multiple: boolean; options: Choice[] | undefined })
  | (ParamBase & { type: "date"; min: string | undefined; max: string | undefined })
  | (ParamBase & { type: "date_range"; presets: string[]; min: string | undefined; max: string | undefined });

export type ParamOf<T extends Param["type"]> = Extract<Param, { type: T }>;

export interface DashboardDoc {
  title: string;
  description: string;
  params: Param[];
  queries: Map<string, string>;
  panels: Panel[];
}

/** Invalid YAML, with its position. */
export interface Unreadable {
  message: string;
  line: number;
}

type Raw = Record<string, unknown>;
const asRaw = (value: unknown): Raw =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Raw) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const some = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;
const yes = (value: unknown): boolean => value === true;

/** A field by name, or with display options. */
function field(value: unknown, format?: string): ChartField | undefined {
  const raw = typeof value === "string" ? { field: value } : asRaw(value);
  const name = some(raw.field);
  if (name === undefined) return undefined;
  const shown: ChartField = { field: name };
  const title = some("title" in raw ? raw.title : undefined);
  const own = some("format" in raw ? raw.format : undefined) ?? format;
  if (title) shown.title = title;
  if (own) shown.format = own;
  return shown;
}

const fields = (value: unknown, format?: string): ChartField[] =>
  list(value)
    .map((one) => field(one, format))
    .filter((one) => one !== undefined);

function measure(value: unknown): Measure | undefined {
  const shown = field(asRaw(value));
  return shown && { ...shown, aggregate: some(asRaw(value).aggregate) };
}

const compareOf = (value: unknown): Compare | undefined =>
  value === "previous_period" || value === "previous_year" ? value : undefined;

function baseOf(raw: Raw, id: string): PanelBase {
  const height = number(raw.height);
  return {
    id,
    title: text(raw.title),
    description: text(raw.description),
    width: Math.min(GRID_COLUMNS, Math.max(1, Math.round(number(raw.width) ?? GRID_COLUMNS))),
    height: height === undefined ? undefined : Math.min(PANEL_HEIGHT_PX_MAX, Math.max(PANEL_HEIGHT_PX_MIN, height)),
  };
}

function panelOf(value: unknown, at: number): Panel {
  const raw = asRaw(value);
  const base = baseOf(raw, some(raw.id) ?? `panel-${at + 1}`);
  const query = some(raw.query) ?? "";
  const kind = PANEL_KINDS.find((one) => one === raw.type);
  return (kind && panelOfKind(kind, raw, { ...base, query })) ?? { ...base, type: "broken" };
}

function panelOfKind(kind: PanelKind, raw: Raw, base: PanelBase & { query: string }): Panel | undefined {
  const [x, y] = [some(raw.x), fields(raw.y, some(raw.format))];
  const series = some(raw.series);
  const compare = { compare: compareOf(raw.compare), compareParam: some(raw.compare_param) };
  switch (kind) {
    case "kpi": {
      const value = measure(raw.value);
      const better = raw.better === "lower" || raw.better === "neither" ? raw.better : "higher";
      return value && { ...base, type: "kpi", value, better, ...compare };
    }
    case "line":
    case "area":
    case "bar":
      if (!x || y.length === 0) return undefined;
      return {
        ...base,
        ...compare,
        type: kind,
        x,
        y,
        series,
        format: some(raw.format),
        stacked: yes(raw.stacked),
        horizontal: yes(raw.horizontal),
        connectNulls: yes(raw.connect_nulls),
      };
    case "pie": {
      const part = field(raw.y);
      return x && part ? { ...base, type: "pie", x, y: part, donut: yes(raw.donut) } : undefined;
    }
    case "scatter": {
      const [along, up] = [field(raw.x), field(raw.y)];
      if (!along || !up) return undefined;
      return { ...base, type: "scatter", x: along, y: up, series, size: some(raw.size), label: some(raw.label) };
    }
    case "heatmap": {
      const [down, value] = [some(raw.y), field(raw.value)];
      return x && down && value ? { ...base, type: "heatmap", x, y: down, value } : undefined;
    }
    case "table":
      return { ...base, type: "table", columns: fields(raw.columns) };
    case "pivot": {
      const values = list(raw.values)
        .map(measure)
        .filter((one) => one !== undefined);
      const rows = fields(raw.rows);
      if (rows.length === 0 || values.length === 0) return undefined;
      return { ...base, type: "pivot", rows, columns: fields(raw.columns), values, totals: yes(raw.totals) };
    }
    case "markdown":
      return { ...base, type: "markdown", text: text(raw.text), tokens: [] };
  }
}

const isScalar = (value: unknown): value is Scalar => ["string", "number", "boolean"].includes(typeof value);

function optionOf(value: unknown): Choice | undefined {
  if (isScalar(value)) return { value, label: String(value) };
  const raw = asRaw(value);
  return isScalar(raw.value) ? { value: raw.value, label: some(raw.label) ?? String(raw.value) } : undefined;
}

function paramOf(value: unknown): Param | undefined {
  const raw = asRaw(value);
  const name = some(raw.name);
  if (!name) return undefined;
  const base = { name, title: some(raw.title) ?? name, description: text(raw.description) };
  const bounds = { min: some(raw.min), max: some(raw.max) };
  switch (raw.type) {
    case "text":
      return { ...base, type: "text", placeholder: text(raw.placeholder) };
    case "number":
      return {
        ...base,
        type: "number",
        min: number(raw.min),
        max: number(raw.max),
        step: number(raw.step),
        integer: yes(raw.integer),
      };
    case "select": {
      const given = Array.isArray(raw.options) ? list(raw.options).map(optionOf) : undefined;
      const options = given?.filter((one) => one !== undefined);
      return { ...base, type: "select", multiple: yes(raw.multiple), options };
    }
    case "date":
      return { ...base, type: "date", ...bounds };
    case "date_range":
      return { ...base, type: "date_range", presets: list(raw.presets).map(text).filter(Boolean), ...bounds };
    default:
      return undefined;
  }
}

/** Converts parsed YAML to a document. */
export function documentOf(value: unknown): DashboardDoc {
  const raw = asRaw(value);
  const seen = new Set<string>();
  const panels = list(raw.panels).map(panelOf);
  const queries = Object.entries(asRaw(raw.queries)).map(([name, query]): [string, string] => [
    name,
    text(asRaw(query).sql),
  ]);
  return {
    title: text(raw.title),
    description: text(raw.description),
    params: list(raw.params)
      .map(paramOf)
      .filter((one) => one !== undefined),
    queries: new Map(queries),
    // The service answers for the first of two panels with the same ID.
    panels: panels.filter(({ id }) => !seen.has(id) && seen.add(id)),
  };
}

/** Parses YAML like the service; loads the parser on demand. */
export async function readDocument(source: string): Promise<DashboardDoc | Unreadable> {
  const { parsed, valueOf } = await import("../../boards/yaml");
  const tree = parsed(source);
  const [error] = tree.errors;
  if (error) return { message: firstLine(error.message), line: error.linePos?.[0].line ?? 1 };
  let value: unknown;
  try {
    value = valueOf(tree);
  } catch (thrown) {
    return { message: asFailure(thrown).message, line: 1 };
  }
  const document = documentOf(value);
  if (document.panels.some(({ type }) => type === "markdown")) await lexed(document);
  return document;
}

/** The parser's message without the place and the lines around it. */
const firstLine = (message: string): string =>
  (message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, ".");

/** Parses Markdown before the first render, so that panels have their final height. */
async function lexed(document: DashboardDoc): Promise<void> {
  const { lexer } = await import("marked");
  for (const panel of document.panels) {
    if (panel.type === "markdown") panel.tokens = lexer(panel.text, { gfm: true });
  }
}

export const isReadable = (read: DashboardDoc | Unreadable): read is DashboardDoc => "panels" in read;
