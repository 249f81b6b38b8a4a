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
