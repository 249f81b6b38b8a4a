/** Reads dates and numbers as people of the browser's locale write them. */

const MONTHS = Array.from({ length: 12 }, (_, at) => Date.UTC(2001, at, 1));
const names = (locale: string | undefined): string[] =>
  MONTHS.map((ms) => new Intl.DateTimeFormat(locale, { month: "long", timeZone: "UTC" }).format(ms).toLowerCase());
/** Fewer letters don't name a month. */
const MONTH_LETTERS_MIN = 3;

type Part = "year" | "month" | "day";

const isPart = (type: string): type is Part => type === "year" || type === "month" || type === "day";

const orderOf = (locale: string | undefined): Part[] =>
  new Intl.DateTimeFormat(locale)
    .formatToParts(0)
    .map(({ type }) => type)
    .filter(isPart);

const pad = (n: number, length = 2): string => String(n).padStart(length, "0");

/** `2024-05-31`, if there is such a day. */
function dayText(year: number, month: number, day: number): string | undefined {
  const date = new Date(Date.UTC(2000, 0, 1));
  date.setUTCFullYear(year, month - 1, day);
  const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && year > 0 && year <= 9_999;
  return isDay ? `${pad(year, 4)}-${pad(month)}-${pad(day)}` : undefined;
}

/** Number of the month that a word names. */
function monthOf(word: string, locale: string | undefined): number | undefined {
  if (word.length < MONTH_LETTERS_MIN) return undefined;
  for (const known of [names(locale), names("en")]) {
    const at = known.findIndex((name) => name.startsWith(word));
    if (at >= 0) return at + 1;
  }
  return undefined;
}

const fullYear = (text: string): number => (text.length === 2 ? 2_000 + Number(text) : Number(text));

/** The day that a text names: `2024-05-31`, `31.5.2024`, `5/31/2024` or `31 May 2024`, by the locale's order. */
export function dayOf(text: string, locale?: string): string | undefined {
  const parts = text
    .trim()
    .toLowerCase()
    .split(/[\s.,/-]+/u)
    .filter(Boolean);
  const words = parts.filter((part) => /^\p{L}+$/u.test(part));
  const numbers = parts.filter((part) => /^(?:\d{1,2}|\d{4})$/.test(part));
  if (words.length + numbers.length !== 3 || parts.length !== 3 || words.length > 1) return undefined;
  const [first = "", second = "", third = ""] = numbers;
  if (words[0] !== undefined) {
    const month = monthOf(words[0], locale);
    if (month === undefined) return undefined;
    const [day, year] = first.length === 4 ? [second, first] : [first, second];
    return dayText(fullYear(year), month, Number(day));
  }
  if (first.length === 4) return dayText(Number(first), Number(second), Number(third));
  if (third === "") return undefined;
  const order = orderOf(locale);
  const dayFirst = text.includes(".") || order.indexOf("day") < order.indexOf("month");
  const year = fullYear(third);
  const read = (isDayFirst: boolean) =>
    isDayFirst ? dayText(year, Number(second), Number(first)) : dayText(year, Number(first), Number(second));
  // The other order, where only that names a day.
  return read(dayFirst) ?? read(!dayFirst);
}

/** A day as people of the locale write it, as an example. */
export const dayExample = (locale?: string): string =>
  new Intl.DateTimeFormat(locale, { timeZone: "UTC" }).format(Date.UTC(2013, 0, 31));

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A number with the locale's separators as plain digits; undefined if it isn't one. */
export function plainNumber(text: string, locale?: string): string | undefined {
  const parts = new Intl.NumberFormat(locale).formatToParts(-1_234_567.5);
  const sign = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  const [group, decimal] = [sign("group"), sign("decimal")];
  // Whatever space the locale uses, keyboards have one.
  const groups = /\s/u.test(group) ? "[\\s\u00a0\u202f]" : escaped(group);
  const form = new RegExp(`^[-\u2212]?(?:\\d+|\\d{1,3}(?:${groups}\\d{3})+)(?:${escaped(decimal)}\\d+)?$`, "u");
  if (!form.test(text)) return undefined;
  return text.replaceAll(new RegExp(groups, "gu"), "").replace(decimal, ".").replace("\u2212", "-");
}
