/** Titles of relative ranges and days. The service resolves them (in UTC). */
export const RANGES: Record<string, string> = {
  today: "Today",
  yesterday: "Yesterday",
  last_7_days: "Last 7 days",
  last_14_days: "Last 14 days",
  last_28_days: "Last 28 days",
  last_30_days: "Last 30 days",
  last_90_days: "Last 90 days",
  last_180_days: "Last 180 days",
  last_365_days: "Last 365 days",
  this_week: "This week",
  last_week: "Last week",
  this_month: "This month",
  last_month: "Last month",
  this_quarter: "This quarter",
  last_quarter: "Last quarter",
  this_year: "This year",
  last_year: "Last year",
  all: "All time",
};

export const DAYS: Record<string, string> = {
  today: "Today",
  yesterday: "Yesterday",
  start_of_week: "Start of the week",
  start_of_month: "Start of the month",
  start_of_quarter: "Start of the quarter",
  start_of_year: "Start of the year",
};

const DAY_MS = 86_400_000;
const day = (text: string): number => Date.parse(`${text}T00:00:00Z`);

export interface Range {
  start: string;
  end: string;
}

const dayText = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Days of a relative range, as the service resolves it. `today`: in milliseconds. */
export function daysOfRange(name: string, today = Date.now()): Range | undefined {
  const now = new Date(today);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  const start = Date.UTC(year, month, now.getUTCDate());
  const spans: Record<string, number> = { month: 1, quarter: 3, year: 12 };
  const last = /^last_(\d+)_days$/.exec(name);
  const range = (from: number, to: number): Range => ({ start: dayText(from), end: dayText(to) });
  if (last) return range(start - (Number(last[1]) - 1) * DAY_MS, start);
  if (name === "today") return range(start, start);
  if (name === "yesterday") return range(start - DAY_MS, start - DAY_MS);
  const [which, unit = ""] = name.split("_");
  const back = which === "last" ? 1 : which === "this" ? 0 : undefined;
  if (back === undefined) return undefined;
  if (unit === "week") {
    const monday = start - ((now.getUTCDay() + 6) % 7) * DAY_MS - back * 7 * DAY_MS;
    return range(monday, monday + 6 * DAY_MS);
  }
  const months = spans[unit];
  if (months === undefined) return undefined;
  const first = Math.floor(month / months) * months - back * months;
  return range(Date.UTC(year, first), Date.UTC(year, first + months) - DAY_MS);
}

const daysOf = ({ start, end }: Range): number => Math.round((day(end) - day(start)) / DAY_MS) + 1;

/** Days between a range and the one it is compared with. */
export function shiftOf(range: Range, compare: "previous_period" | "previous_year"): number {
  if (compare === "previous_period") return daysOf(range);
  const start = new Date(day(range.start));
  const before = new Date(start);
  before.setUTCFullYear(start.getUTCFullYear() - 1);
  // The 29th of February is compared with the 28th.
  if (before.getUTCDate() !== start.getUTCDate()) before.setUTCDate(0);
  return Math.round((start.getTime() - before.getTime()) / DAY_MS);
}
