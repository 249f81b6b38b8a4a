/** Compares a KPI with an earlier period. */
import type { PanelRows } from "../../api/types";
import { count } from "../../format/number";
import { numberWritten, numeric, written } from "../../format/values";
import type { Measure, PanelOf } from "./document";

interface Kpi {
  text: string;
  /** Undefined without a comparison. */
  change: Change | undefined;
}

interface Change {
  way: "up" | "down" | "same" | "unknown";
  tone: "ok" | "bad" | "neutral";
  /** "+12.3% vs. 1,234 in the previous period" */
  text: string;
}

const SPANS = { previous_period: "previous period", previous_year: "previous year" } as const;
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const points = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

function cell(rows: PanelRows, measure: Measure) {
  const at = rows.columns.findIndex(({ name }) => name === measure.field);
  return { value: rows.rows[0]?.[at] as never, type: rows.columns[at]?.type ?? "string" };
}

export function kpiOf(panel: PanelOf<"kpi">, rows: PanelRows): Kpi {
  const { value, type } = cell(rows, panel.value);
  const text = written(value, panel.value.format, type) || "–";
  return { text, change: panel.compare ? changeOf(panel, numeric(value), rows.previous) : undefined };
}

function changeOf(panel: PanelOf<"kpi">, now: number | null, previous: PanelRows["previous"]): Change {
  const span = SPANS[panel.compare ?? "previous_period"];
  const unknown = (text: string): Change => ({ way: "unknown", tone: "neutral", text });
  if (!previous) return unknown(`No ${span}`);
  if ("error" in previous) return unknown(`Couldn't compare with the ${span}: ${previous.message}`);
  const { value, type } = cell(previous, panel.value);
  const before = numeric(value);
  if (before === null || now === null) return unknown(`No value in the ${span}`);
  const formatted = written(value, panel.value.format, type);
  if (before === now) return { way: "same", tone: "neutral", text: `no change vs. ${formatted} in the ${span}` };
  const up = now > before;
  const good = panel.better === "neither" ? "neutral" : up === (panel.better === "higher") ? "ok" : "bad";
  return {
    way: up ? "up" : "down",
    tone: good,
    text: `${difference(panel, now, before)} vs. ${formatted} in the ${span}`,
  };
}

function difference(panel: PanelOf<"kpi">, now: number, before: number): string {
  const sign = now > before ? "+" : "−";
  const size = Math.abs(now - before);
  if (panel.value.format?.startsWith("percent")) return `${sign}${points.format(size * 100)} points`;
  // A percentage of zero or a negative number is meaningless.
  if (before <= 0 || now < 0) return `${sign}${numberWritten(size, panel.value.format)}`;
  if (now / before >= 10) return `${count(Math.round(now / before))}×`;
  return `${sign}${percent.format(size / before)}`;
}
