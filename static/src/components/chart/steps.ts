/** Regular steps of times, so that a missing one is a gap and not drawn over. */
export interface Step {
  unit: "month" | "day";
  by: number;
}

const DAY_MS = 86_400_000;
/** Fewer times have no recognizable step. */
const TIMES_MIN = 3;
/** Daily data has weekends and holidays without rows. */
const DAYS_JOINED_MAX = 4;
/** Maximum number of units on an axis. */
const UNITS_MAX = 5_000;
/** Maximum number of missing times. */
const MISSING_MAX = 1_000;

const monthOf = (ms: number): number => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth();

interface Regular {
  step: Step;
  /** Each time as a number of units. */
  numbers: number[];
  /** Time of a number. */
  timeOf: (n: number) => number;
}

/** `times`: ascending and distinct. */
function regular(times: readonly number[]): Regular | undefined {
  if (times.length < TIMES_MIN || times.some((ms) => ms % DAY_MS !== 0)) return undefined;
  const isFirst = (ms: number) => new Date(ms).getUTCDate() === 1;
  // Last days of months are the days before the first ones.
  const shift = [0, DAY_MS].find((shift) => times.every((ms) => isFirst(ms + shift)));
  const unit = shift === undefined ? "day" : "month";
  const numbers = times.map((ms) => (shift === undefined ? ms / DAY_MS : monthOf(ms + shift)));
  const steps = numbers.slice(1).map((n, at) => n - (numbers[at] ?? n));
  const by = Math.min(...steps);
  const isRegular =
    steps.every((step) => step % by === 0) && steps.filter((step) => step === by).length * 2 >= steps.length;
  if (!isRegular) return undefined;
  const timeOf = (n: number) => (shift === undefined ? n * DAY_MS : Date.UTC(Math.floor(n / 12), n % 12) - shift);
  return { step: { unit, by }, numbers, timeOf };
}

const ascending = (times: Iterable<number>): number[] => [...new Set(times)].sort((a, b) => a - b);

/** The step that most neighbours have; undefined if there is none. */
export const stepOf = (times: Iterable<number>): Step | undefined => regular(ascending(times))?.step;

/** Times that regular ones skip, ascending. */
export function missingTimes(times: Iterable<number>): number[] {
  const found = regular(ascending(times));
  if (!found) return [];
  const { step, numbers, timeOf } = found;
  const joined = step.unit === "day" && step.by === 1 ? DAYS_JOINED_MAX : step.by;
  const missing: number[] = [];
  for (const [at, n] of numbers.entries()) {
    const next = numbers[at + 1] ?? n;
    if (next - n <= joined) continue;
    for (let one = n + step.by; one < next; one += step.by) {
      if (missing.length === MISSING_MAX) return [];
      missing.push(timeOf(one));
    }
  }
  return missing;
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
  return found;
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
  if (unit === "day") return DAY_MS * 1.3;
  // ECharts chooses the unit below the one that is longer than this.
  return by >= 12 ? 366 * DAY_MS : by >= 3 ? 96 * DAY_MS : 32 * DAY_MS;
}
