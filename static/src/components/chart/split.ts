/** Splits rows into lines, one per measure and series value. */
import type { Row } from "../../api/types";
import { count, counted } from "../../format/number";
import { numeric, plain } from "../../format/values";
import { type Axis, type ResolvedField, keyOf, labelsOf, type Notes, position } from "./columns";
import type { Line } from "./shape";
import type { Compared } from "./spec";

const LINES_MAX = 12;
const DAY_MS = 86_400_000;

type PositionOf = (row: Row) => number | null;

interface Drawn extends Line {
  /** Measure and series value. */
  key: string;
}

interface Split {
  lines: Drawn[];
}

interface LineOptions {
  stacked: boolean;
  notes: Notes;
}

function gathered(
  rows: Row[],
  y: ResolvedField[],
  series: ResolvedField | undefined,
  place: PositionOf,
): Map<string, Drawn> {
  const label = series && labelsOf(series, rows);
  const found = new Map<string, Drawn>();
  for (const row of rows) {
    const at = place(row);
    if (at === null) continue;
    for (const field of y) {
      const key = `${field.at}/${series ? keyOf(row[series.at]) : ""}`;
      let line = found.get(key);
      if (!line) {
        const part = series && label ? label(row[series.at]) : "";
        const name = !series ? field.name : y.length > 1 ? `${part} · ${field.name}` : part;
        line = { key, name, format: field.format ?? "number", points: [] };
        found.set(key, line);
      }
      line.points.push([at, numeric(row[field.at])]);
    }
  }
  return found;
}

const total = (line: Line): number => line.points.reduce((sum, [, value]) => sum + Math.abs(value ?? 0), 0);

export function splitRows(
  rows: Row[],
  y: ResolvedField[],
  series: ResolvedField | undefined,
  place: PositionOf,
  options: LineOptions,
): Split {
  const found = [...gathered(rows, y, series, place).values()];
  let lines = found;
  if (found.length > LINES_MAX) {
    const largest = new Set([...found].sort((a, b) => total(b) - total(a)).slice(0, LINES_MAX));
    lines = found.filter((line) => largest.has(line));
    options.notes.say(`Showing the ${LINES_MAX} largest of ${count(found.length)} series.`);
  }
  // Results of SQL have no order of their own.
  if (series) lines = [...lines].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  return { lines: aligned(lines, options) };
}

/** Aligns lines on the same positions, so that missing values are gaps and areas stack. */
function aligned(lines: Drawn[], { stacked, notes }: LineOptions): Drawn[] {
  const places = [...new Set(lines.flatMap((line) => line.points.map(([at]) => at)))].sort((a, b) => a - b);
  let twins = 0;
  const done = lines.map((line) => {
    const values = new Map<number, number | null>();
    for (const [at, value] of line.points) {
      if (values.has(at)) twins += 1;
      else values.set(at, value);
    }
    const missing = stacked ? 0 : null;
    return { ...line, points: places.map((at): [number, number | null] => [at, values.get(at) ?? missing]) };
  });
  if (twins > 0) notes.say(`${counted(twins, "row")} not shown: another row has the same x value.`);
  return done;
}

/** Adds the lines of the compared period, shifted onto the current one. */
export function withPreviousPeriod(
  split: Split,
  compared: Compared,
  on: { axis: Axis; x: ResolvedField; y: ResolvedField[]; series: ResolvedField | undefined; place: PositionOf },
): Line[] {
  const { axis, x, y, series } = on;
  const isTime = x.type !== "" && position(compared.rows[0]?.[x.at], "time") !== null;
  const place = isTime ? shiftedPosition(compared, on) : on.place;
  const found = gathered(compared.rows, y, series, place);
  return split.lines.flatMap((line, at) => {
    const before = found.get(line.key);
    if (!before) return [];
    const points = axis.kind === "category" ? before.points : [...before.points].sort((a, b) => a[0] - b[0]);
    return [{ name: `${line.name}, ${compared.title}`, format: line.format, points, of: at }];
  });
}

/** Shifts by the days between the periods, or by order where that misses (months differ in length). */
function shiftedPosition(compared: Compared, on: { axis: Axis; x: ResolvedField; place: PositionOf }): PositionOf {
  const { axis, x } = on;
  const move = (row: Row): Row => {
    const ms = position(row[x.at], "time");
    if (ms === null) return row;
    const moved = new Date(ms + compared.days * DAY_MS).toISOString();
    const text = plain(row[x.at]);
    const like = text.length === 10 ? moved.slice(0, 10) : `${moved.slice(0, 19)}${text.slice(19)}`;
    return row.map((cell, at) => (at === x.at ? like : cell));
  };
  if (axis.kind === "time") return (row) => on.place(move(row));
  const hits = compared.rows.filter((row) => on.place(move(row)) !== null).length;
  if (hits * 2 > compared.rows.length) return (row) => on.place(move(row));
  const order = new Map<string, number>();
  for (const row of compared.rows) {
    const key = keyOf(row[x.at]);
    if (!order.has(key)) order.set(key, order.size);
  }
  return (row) => {
    const at = order.get(keyOf(row[x.at])) ?? Number.POSITIVE_INFINITY;
    return at < axis.labels.length ? at : null;
  };
}
