import type { Cell, ResultColumn } from "../../api/types";
import { familyOf, numeric } from "../../format/values";
import type { ChartSpec } from "./spec";

/** Lines that a reader can distinguish. */
const LINES_MAX = 5;
/** Maximum number of series. */
const SERIES_MAX = 8;
const BARS_MAX = 60;
/** Longer labels are easier to read next to horizontal bars. */
const LABEL_CHARS_MAX = 12;
/** Rows that are sampled. */
const SAMPLE_ROWS_MAX = 1_000;

interface Seen {
  name: string;
  family: "number" | "time" | "other";
  distinct: number;
  /** Whether all values are distinct. */
  unique: boolean;
  longest: number;
}

function seen(column: ResultColumn, at: number, rows: Cell[][]): Seen | undefined {
  const values = rows.slice(0, SAMPLE_ROWS_MAX).map((row) => row[at] ?? null);
  const there = values.filter((value) => value !== null);
  if (there.length === 0) return undefined;
  const family = familyOf(column.type);
  if (family === "number" && !there.some((value) => numeric(value) !== null)) return undefined;
  if (family === "other" && there.some((value) => typeof value === "object")) return undefined;
  const distinct = new Set(there.map(String));
  return {
    name: column.name,
    family,
    distinct: distinct.size,
    unique: distinct.size === there.length,
    longest: Math.max(...[...distinct].map((text) => text.length)),
  };
}

/** Identifiers rather than measures. */
const isName = (column: Seen): boolean => /(?:^|_)(?:id|key|code|zip|year|month|day|hour)$/i.test(column.name);

/** Suggests a chart for a result; undefined if none fits. Ignores columns without values. */
export function guessChart(columns: ResultColumn[], rows: Cell[][]): ChartSpec | undefined {
  if (rows.length < 2) return undefined;
  const all = columns.map((column, at) => seen(column, at, rows)).filter((one) => one !== undefined);
  const numbers = all.filter(({ family }) => family === "number");
  const measures = numbers.filter((one) => !isName(one));
  const time = all.find(({ family, distinct }) => family === "time" && distinct > 1);
  const words = all.filter(({ family }) => family === "other");
  if (time && measures.length > 0) return overTime(time, measures, words);
  const word = words.find(({ unique, distinct }) => unique && distinct <= BARS_MAX) ?? words[0];
  if (word && measures.length > 0 && word.distinct > 1) return perWord(word, measures, words);
  const [x, y] = numbers;
  if (!x || !y) return undefined;
  const measure = measures.find((one) => one !== x) ?? y;
  if (isName(x) && x.unique && x.distinct <= BARS_MAX)
    return { type: "bar", x: { field: x.name }, y: [{ field: measure.name }] };
  return words.length > 0 ? undefined : { type: "scatter", x: { field: x.name }, y: [{ field: measure.name }] };
}

function overTime(time: Seen, measures: Seen[], words: Seen[]): ChartSpec {
  const series = time.unique ? undefined : words.find(({ distinct }) => distinct > 1 && distinct <= SERIES_MAX);
  const y = measures.slice(0, series ? 1 : LINES_MAX).map(({ name }) => ({ field: name }));
  // Several rows per time without a series column are points, not a line.
  const type = time.unique || series ? "line" : "scatter";
  const x = { field: time.name };
  return series ? { type, x, y, series: series.name } : { type, x, y: type === "scatter" ? y.slice(0, 1) : y };
}

function perWord(word: Seen, measures: Seen[], words: Seen[]): ChartSpec | undefined {
  if (word.distinct > BARS_MAX) return undefined;
  const other = word.unique ? undefined : words.find((one) => one !== word && one.distinct <= SERIES_MAX);
  if (!word.unique && !other) return undefined;
  return {
    type: "bar",
    x: { field: word.name },
    y: measures.slice(0, other ? 1 : 2).map(({ name }) => ({ field: name })),
    ...(other ? { series: other.name } : {}),
    ...(word.longest > LABEL_CHARS_MAX ? { horizontal: true } : {}),
  };
}
