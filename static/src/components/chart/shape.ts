/**
 * Converts result rows to the data of a chart; {@link file://./option.ts} styles it.
 *
 * Invariant: data that is cut, sampled or grouped is mentioned in `notes`.
 */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { count, counted } from "../../format/number";
import { numeric, plain } from "../../format/values";
import {
  type Axis,
  distinct,
  grain,
  GRAIN_MONTHS,
  type ResolvedField,
  resolveField,
  keyOf,
  kindOf,
  labelled,
  labelsOf,
  Notes,
  position,
} from "./columns";
import { withPreviousPeriod, splitRows } from "./split";
import type { ChartSpec, Compared } from "./spec";
import { missingTimes, stepOf, unitsOf } from "./steps";

const DAY_MS = 86_400_000;
const CATEGORIES_MAX = 200;
/** Each part has its own colour; the last is for “Other”. */
const PARTS_MAX = 8;
const CELLS_SIDE_MAX = 400;
/** Lines with more points are downsampled. */
export const POINTS_MAX = 5_000;

/** A series of values along an axis. */
export interface Line {
  name: string;
  format: string;
  points: [number, number | null][];
  /** Index of the line that this one is compared with. */
  of?: number;
}

interface Point {
  place: [number, number];
  size: number | null;
  name: string;
}

interface Part {
  name: string;
  value: number;
  /** The grouped parts, largest first. */
  of?: Part[];
}

export type Shape = { notes: string[] } & (
  | { kind: "none"; why: string }
  | { kind: "lines"; x: Axis; y: Axis; lines: Line[]; thinned: boolean }
  | { kind: "parts"; format: string; parts: Part[] }
  | {
      kind: "points";
      x: Axis;
      y: Axis;
      groups: { name: string; points: Point[] }[];
      size: { name: string; format: string } | undefined;
    }
  | { kind: "cells"; x: Axis; y: Axis; value: { name: string; format: string }; cells: [number, number, number][] }
);

const none = (why: string): Shape => ({ kind: "none", why, notes: [] });

export function shapeOf(spec: ChartSpec, columns: ResultColumn[], rows: Row[], compared?: Compared): Shape {
  const x = resolveField(spec.x, columns);
  const y = spec.y.map((field) => resolveField(field, columns)).filter((field) => field !== undefined);
  if (!x || y.length < spec.y.length || y.length === 0)
    return none("The result doesn't have the columns of this chart.");
  if (rows.length === 0) return none("No rows.");
  switch (spec.type) {
    case "line":
    case "area":
    case "bar":
      return lines(spec, x, y, columns, rows, compared);
    case "pie":
      return parts(x, y[0], rows);
    case "scatter":
      return points(spec, x, y[0], columns, rows);
    case "heatmap":
      return cells(x, y[0], resolveField(spec.value, columns), rows);
  }
}

/** Adds regular times that are missing between others, if these are in order. */
function withMissing(found: [string, Cell][], max: number, name: string): [string, Cell][] {
  const times = found.map(([, value]) => position(value, "time"));
  const isSorted = (sign: number) =>
    times.every((ms, at) => ms !== null && (at === 0 || (ms - (times[at - 1] ?? ms)) * sign > 0));
  const sign = [1, -1].find(isSorted);
  const missing =
    sign === undefined
      ? []
      : missingTimes(
          times.filter((ms) => ms !== null),
          name,
          true,
        );
  if (missing.length === 0 || found.length + missing.length > max) return found;
  const added = missing.map((ms): [number, [string, Cell]] => {
    const value = new Date(ms).toISOString().slice(0, ms % DAY_MS === 0 ? 10 : 19);
    return [ms, [`missing ${value}`, value]];
  });
  const all = [...found.map((one, at): [number, [string, Cell]] => [times[at] ?? 0, one]), ...added];
  return all.sort(([a], [b]) => (a - b) * (sign ?? 1)).map(([, one]) => one);
}

/** Category axis, limited to a readable number. `gaps`: times that are missing have a place, too. */
function categories(
  field: ResolvedField,
  rows: Row[],
  max: number,
  notes: Notes,
  gaps = false,
): { axis: Axis; at: Map<string, number> } {
  const own = [...distinct(rows, field.at)];
  const found = gaps && kindOf(field.type) === "time" ? withMissing(own, max, field.field) : own;
  const shown = found.slice(0, max);
  notes.cut(shown.length, found.length, `values of ${field.name}`);
  const times = shown.map(([, value]) => position(value, "time")).filter((ms) => ms !== null);
  const format = kindOf(field.type) === "time" ? grain(times, field.field) : "text";
  const labels = shown.map(([, value]) => labelled(value, field, format));
  return {
    axis: { kind: "category", name: field.name, format, labels },
    at: new Map(shown.map(([key], index) => [key, index])),
  };
}

/** From here on, the first tick of a year is labelled by the year alone. */
const LONG_MS = 3 * 366 * 86_400_000;

/** From here on, months are labelled, whatever the times are. */
const MONTHS_MS = 100 * 86_400_000;
const CENTURY_MS = 36_525 * 86_400_000;
/** Up to here, days are labelled one by one. */
const SHORT_MS = 45 * 86_400_000;

function spanOf(times: number[]): number {
  let [least, most] = [Infinity, -Infinity];
  for (const ms of times) [least, most] = [Math.min(least, ms), Math.max(most, ms)];
  return most - least;
}

/** Continuous axis of a field, and the position of a row on it. */
function axisOf(field: ResolvedField, rows: Row[], notes: Notes): { axis: Axis; place: (row: Row) => number | null } {
  const kind = kindOf(field.type);
  if (kind === "category") {
    const { axis, at } = categories(field, rows, CATEGORIES_MAX, notes);
    return { axis, place: (row) => at.get(keyOf(row[field.at])) ?? null };
  }
  const place = (row: Row) => position(row[field.at], kind);
  const times = rows.map(place).filter((ms) => ms !== null);
  const unit = kind === "time" ? grain(times, field.field) : undefined;
  const format = field.format ?? unit ?? "number";
  const step =
    unit === undefined ? undefined : (stepOf(times) ?? (unit === "date" ? { unit: "day", by: 1 } : undefined));
  const span = kind === "time" ? spanOf(times) : 0;
  const months =
    unit && unit in GRAIN_MONTHS
      ? GRAIN_MONTHS[unit as keyof typeof GRAIN_MONTHS]
      : span > MONTHS_MS && span < CENTURY_MS && 1;
  const units = months ? unitsOf(times, months) : undefined;
  const isLong = span > LONG_MS || (step?.unit === "month" && step.by % 12 === 0);
  const isShort = unit === "date" && span < SHORT_MS;
  return {
    axis: {
      kind,
      name: field.name,
      format,
      labels: [],
      isLong,
      isShort,
      ...(step ? { step } : {}),
      ...(units ? { units } : {}),
    },
    place,
  };
}

/** A line that breaks where regular times are missing. */
function withGaps(line: Line, name: string): Line {
  const missing = missingTimes(
    line.points.map(([at]) => at),
    name,
  );
  if (missing.length === 0) return line;
  const points = [...line.points, ...missing.map((at): [number, null] => [at, null])];
  return { ...line, points: points.sort(([a], [b]) => a - b) };
}

function lines(
  spec: ChartSpec,
  x: ResolvedField,
  y: ResolvedField[],
  columns: ResultColumn[],
  rows: Row[],
  compared: Compared | undefined,
): Shape {
  const notes = new Notes();
  const series = resolveField(spec.series ? { field: spec.series } : undefined, columns);
  const isBar = spec.type === "bar";
  const measured = isBar ? undefined : axisOf(x, rows, notes);
  const banded = isBar ? categories(x, rows, CATEGORIES_MAX, notes, true) : undefined;
  const axis = measured?.axis ?? banded?.axis;
  const place = measured?.place ?? ((row: Row) => banded?.at.get(keyOf(row[x.at])) ?? null);
  if (!axis) return none("No rows.");
  const split = splitRows(rows, y, series, place, { stacked: spec.stacked ?? false, notes });
  const before = compared ? withPreviousPeriod(split, compared, { axis, x, y, series, place }) : [];
  const all = [...split.lines, ...before];
  const drawn = axis.kind === "time" ? all.map((line) => withGaps(line, x.field)) : all;
  if (!drawn.some((line) => line.points.some(([, value]) => value !== null))) return none("No values.");
  const most = Math.max(...drawn.map((line) => line.points.length));
  const thinned = most > POINTS_MAX && spec.type !== "bar";
  if (thinned) notes.say(`${count(most)} points per line, sampled to fit the width.`);
  const first = y[0];
  const named = y.length === 1 && !series;
  const value: Axis = {
    kind: "number",
    name: named || y.length === 1 ? (first?.name ?? "") : "",
    format: first?.format ?? "number",
    labels: [],
  };
  return { kind: "lines", x: axis, y: value, lines: drawn, thinned, notes: notes.texts };
}

function parts(x: ResolvedField, y: ResolvedField | undefined, rows: Row[]): Shape {
  if (!y) return none("No values.");
  const notes = new Notes();
  const label = labelsOf(x, rows);
  const sums = new Map<string, { name: string; value: number }>();
  let negative = 0;
  for (const row of rows) {
    const value = numeric(row[y.at]);
    if (value === null) continue;
    if (value < 0) {
      negative += 1;
      continue;
    }
    const key = keyOf(row[x.at]);
    const part = sums.get(key) ?? { name: label(row[x.at]), value: 0 };
    part.value += value;
    sums.set(key, part);
  }
  if (negative > 0) notes.say(`${counted(negative, "negative value")} not shown: a pie can't show negative values.`);
  const sorted = [...sums.values()].filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  if (sorted.length === 0) return none("No values.");
  const shown: Part[] = sorted.length > PARTS_MAX ? sorted.slice(0, PARTS_MAX - 1) : sorted;
  const rest = sorted.slice(shown.length);
  if (rest.length > 0) {
    shown.push({
      name: `Other (${count(rest.length)})`,
      value: rest.reduce((sum, { value }) => sum + value, 0),
      of: rest,
    });
    notes.say(
      `Showing the ${count(PARTS_MAX - 1)} largest of ${count(sorted.length)} parts; the rest are grouped as “Other”.`,
    );
  }
  return { kind: "parts", format: y.format ?? "number", parts: shown, notes: notes.texts };
}

const GROUPS_MAX = 12;

/** Samples points at equal intervals, at most {@link POINTS_MAX} of `all`. */
function evenly(points: Point[], all: number): Point[] {
  const step = all / POINTS_MAX;
  const wanted = Math.max(1, Math.floor(points.length / step));
  return Array.from({ length: wanted }, (_, at) => points[Math.floor(at * step)]).filter((one) => one !== undefined);
}

function points(
  spec: ChartSpec,
  x: ResolvedField,
  y: ResolvedField | undefined,
  columns: ResultColumn[],
  rows: Row[],
): Shape {
  if (!y) return none("No values.");
  const notes = new Notes();
  const [along, up] = [axisOf(x, rows, notes), axisOf(y, rows, notes)];
  const size = resolveField(spec.value, columns);
  const series = resolveField(spec.series ? { field: spec.series } : undefined, columns);
  const point = resolveField(spec.point ? { field: spec.point } : undefined, columns);
  const [groupOf, nameOf] = [series, point].map((field) => field && labelsOf(field, rows));
  const groups = new Map<string, { name: string; points: Point[] }>();
  let left = 0;
  for (const row of rows) {
    const [px, py] = [along.place(row), up.place(row)];
    if (px === null || py === null) continue;
    const key = series ? keyOf(row[series.at]) : "";
    let group = groups.get(key);
    if (!group) {
      group = { name: groupOf && series ? groupOf(row[series.at]) : y.name, points: [] };
      groups.set(key, group);
    }
    const name = nameOf && point ? nameOf(row[point.at]) : "";
    group.points.push({ place: [px, py], size: size ? numeric(row[size.at]) : null, name });
    left += 1;
  }
  if (left === 0) return none("No values.");
  if (left > POINTS_MAX) {
    for (const group of groups.values()) group.points = evenly(group.points, left);
    notes.say(`A sample of ${count(POINTS_MAX)} of ${count(left)} points.`);
  }
  if (left < rows.length) notes.say(`${counted(rows.length - left, "row")} not shown: no value on one of the axes.`);
  const sorted = [...groups.values()];
  const shown =
    sorted.length > GROUPS_MAX ? sorted.sort((a, b) => b.points.length - a.points.length).slice(0, GROUPS_MAX) : sorted;
  notes.cut(shown.length, sorted.length, `values of ${series?.name ?? ""}`);
  return {
    kind: "points",
    x: along.axis,
    y: up.axis,
    groups: shown,
    size: size ? { name: size.name, format: size.format ?? "number" } : undefined,
    notes: notes.texts,
  };
}

const naturalOrder = new Intl.Collator(undefined, { numeric: true });

function cells(x: ResolvedField, y: ResolvedField | undefined, value: ResolvedField | undefined, rows: Row[]): Shape {
  if (!y || !value) return none("No values.");
  const notes = new Notes();
  const along = categories(x, sorted(rows, x), CELLS_SIDE_MAX, notes);
  const down = categories(y, sorted(rows, y), CELLS_SIDE_MAX, notes);
  const found: [number, number, number][] = [];
  for (const row of rows) {
    const [px, py] = [along.at.get(keyOf(row[x.at])), down.at.get(keyOf(row[y.at]))];
    const number = numeric(row[value.at]);
    if (px !== undefined && py !== undefined && number !== null) found.push([px, py, number]);
  }
  if (found.length === 0) return none("No values.");
  const field = { name: value.name, format: value.format ?? "number" };
  return { kind: "cells", x: along.axis, y: down.axis, value: field, cells: found, notes: notes.texts };
}

/** Sorts rows by a column: numbers and times by value, strings by locale. */
function sorted(rows: Row[], field: ResolvedField): Row[] {
  const kind = kindOf(field.type);
  const by = (value: Cell | undefined) => (kind === "category" ? null : position(value, kind));
  return [...rows].sort((a, b) => {
    const [left, right] = [by(a[field.at]), by(b[field.at])];
    if (left !== null && right !== null) return left - right;
    return naturalOrder.compare(plain(a[field.at]), plain(b[field.at]));
  });
}
