/** Regular steps of times, so that a missing one is a gap and not drawn over. */
export interface Step {
  unit: "month" | "day" | "minute";
  by: number;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** Fewer times have no recognizable step, unless the column's name says it. */
const TIMES_MIN = 3;
/** A weekend with a holiday beside it, which business days lack. */
const DAYS_JOINED_MAX = 4;
/** Maximum number of units on an axis. */
const UNITS_MAX = 5_000;
/** Maximum number of missing times; of more, one per gap. */
const MISSING_MAX = 1_000;

const monthOf = (ms: number): number => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth();
const isWeekend = (day: number): boolean => [0, 6].includes(new Date(day * DAY_MS).getUTCDay());

interface Regular {
  step: Step;
  /** Each time as a number of units. */
  numbers: number[];
  /** Time of a number. */
  timeOf: (n: number) => number;
}

const divisorOf = (a: number, b: number): number => (b === 0 ? a : divisorOf(b, a % b));

/** Steps that names of columns say. */
const NAMED: [string, Step][] = [
  ["year", { unit: "month", by: 12 }],
  ["quarter", { unit: "month", by: 3 }],
  ["month", { unit: "month", by: 1 }],
  ["week", { unit: "day", by: 7 }],
  ["hour", { unit: "minute", by: 60 }],
];

/** `times`: ascending and distinct. `name`: of the column, which may name the step. */
function regular(times: readonly number[], name: string): Regular | undefined {
  const isFirst = (ms: number) => ms % DAY_MS === 0 && new Date(ms).getUTCDate() === 1;
  // Last days of months are the days before the first ones.
  const shift = [0, DAY_MS].find((shift) => times.every((ms) => isFirst(ms + shift)));
  const unit = shift !== undefined ? "month" : times.every((ms) => ms % DAY_MS === 0) ? "day" : "minute";
  const unitMs = unit === "day" ? DAY_MS : MINUTE_MS;
  const numbers = times.map((ms) => (shift === undefined ? ms / unitMs : monthOf(ms + shift)));
  const timeOf = (n: number) => (shift === undefined ? n * unitMs : Date.UTC(Math.floor(n / 12), n % 12) - shift);
  const steps = numbers.slice(1).map((n, at) => n - (numbers[at] ?? n));
  const fits = (by: number) => steps.every((step) => step % by === 0);
  const said = NAMED.find(([word, step]) => step.unit === unit && isCalled(name, word) && fits(step.by))?.[1];
  if (steps.length === 0 || (!said && times.length < TIMES_MIN)) return undefined;
  const by = said ? said.by : unit === "month" ? steps.reduce(divisorOf) : Math.min(...steps);
  const isRegular =
    said || unit === "month" || (fits(by) && steps.filter((step) => step === by).length * 2 >= steps.length);
  return isRegular ? { step: { unit, by }, numbers, timeOf } : undefined;
}

const ascending = (times: Iterable<number>): number[] => [...new Set(times)].sort((a, b) => a - b);

/** The step that most neighbours have; undefined if there is none. */
export const stepOf = (times: Iterable<number>): Step | undefined => regular(ascending(times), "")?.step;

/** Whether a column's name has the name of a unit. */
export const isCalled = (name: string, unit: string): boolean =>
  new RegExp(`(?:^|[^a-z])${unit}s?(?:$|[^a-z])`, "i").test(name);

/**
 * Times that regular ones skip, ascending. `name`: of the column, which may name the step. Of too many, `isAll` gives
 * none, else one per gap is given.
 */
export function missingTimes(times: Iterable<number>, name = "", isAll = false): number[] {
  const found = regular(ascending(times), name);
  if (!found) return [];
  const { step, numbers, timeOf } = found;
  const isBusiness = step.unit === "day" && step.by === 1 && !numbers.some(isWeekend);
  const isJoined = (n: number, next: number): boolean =>
    next - n <= step.by ||
    (isBusiness &&
      next - n <= DAYS_JOINED_MAX &&
      Array.from({ length: next - n - 1 }, (_, at) => n + 1 + at).some(isWeekend));
  const gaps = numbers.flatMap((n, at): [number, number][] => {
    const next = numbers[at + 1] ?? n;
    return isJoined(n, next) ? [] : [[n, next]];
  });
  const all = gaps.reduce((sum, [n, next]) => sum + (next - n) / step.by - 1, 0);
  if (all > MISSING_MAX) return isAll ? [] : gaps.map(([n]) => timeOf(n + step.by));
  return gaps.flatMap(([n, next]) =>
    Array.from({ length: (next - n) / step.by - 1 }, (_, at) => timeOf(n + (at + 1) * step.by)),
  );
}

/** Firsts of months from the first time to the last, each `months` apart, in step with the calendar. */
export function unitsOf(times: readonly number[], months: number): number[] {
  let [least, most] = [Infinity, -Infinity];
  for (const ms of times) [least, most] = [Math.min(least, ms), Math.max(most, ms)];
  const [first, last] = [monthOf(least), monthOf(most)];
  if (!Number.isFinite(first)) return [];
  const found: number[] = [];
  for (let n = Math.ceil(first / months) * months; n <= last && found.length < UNITS_MAX; n += months)
    found.push(Date.UTC(Math.floor(n / 12), n % 12));
  return found.filter((ms) => ms >= least);
}

/** Months between two labels: steps that people count in. */
const LABEL_MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200];

/** Those of the units that have room for a label, `max` at most. */
export function labelledUnits(units: readonly number[], max: number): number[] {
  for (const months of LABEL_MONTHS) {
    const kept = units.filter((ms) => monthOf(ms) % months === 0);
    if (kept.length <= Math.max(1, max)) return kept.length > 0 ? kept : units.slice(0, 1);
  }
  return units.slice(0, 1);
}

/** Smallest distance of labels on an axis: no label between two steps. */
export function labelDistanceMin({ unit, by }: Step): number {
  if (unit === "minute") return by * MINUTE_MS;
  if (unit === "day") return DAY_MS * 1.3;
  // ECharts chooses the unit below the one that is longer than this.
  return by >= 12 ? 366 * DAY_MS : by >= 3 ? 96 * DAY_MS : 32 * DAY_MS;
}
