/** Filters on columns, as the API reads them (`column:operator:value`) and as fields show them. */
import { dayExample, dayOf, plainNumber } from "./typed";
import { EMPTY, isNumeric } from "./values";

export type Operator =
  | "eq"
  | "ne"
  | "lt"
  | "le"
  | "gt"
  | "ge"
  | "contains"
  | "starts_with"
  | "in"
  | "not_in"
  | "outside"
  | "is_null"
  | "is_not_null";

export interface Filter {
  column: string;
  operator: Operator;
  value: string;
}

/** Operators of a field: those of the API and one pair. */
export type Choice = Operator | "between";

/** With the symbol for compact display. */
export const CHOICES: Record<Choice, { sign: string; words: string }> = {
  contains: { sign: "has", words: "contains" },
  starts_with: { sign: "abc", words: "starts with" },
  eq: { sign: "=", words: "is" },
  ne: { sign: "≠", words: "is not" },
  ge: { sign: "≥", words: "at least" },
  gt: { sign: ">", words: "more than" },
  le: { sign: "≤", words: "at most" },
  lt: { sign: "<", words: "less than" },
  between: { sign: "–", words: "from … to" },
  outside: { sign: "< >", words: "not from … to" },
  in: { sign: "in", words: "one of" },
  not_in: { sign: "not", words: "none of" },
  is_null: { sign: "null", words: "is null" },
  is_not_null: { sign: "set", words: "is not null" },
};

const OPERATORS = new Set<string>(Object.keys(CHOICES).filter((choice) => choice !== "between"));
const isOperator = (name: string): name is Operator => OPERATORS.has(name);
export const takesValue = (choice: Choice): boolean => choice !== "is_null" && choice !== "is_not_null";

const NULLS: Choice[] = ["is_null", "is_not_null"];
const EQUALITY: Choice[] = ["eq", "ne"];
const LISTS: Choice[] = ["in", "not_in"];
const ORDER: Choice[] = ["ge", "gt", "le", "lt", "between", "outside"];
const TEXT: Choice[] = ["contains", "starts_with", ...EQUALITY, ...LISTS, ...NULLS];
const NUMBER: Choice[] = [...EQUALITY, ...ORDER, ...LISTS, ...NULLS];
const TIME: Choice[] = ["starts_with", ...ORDER, ...EQUALITY, ...NULLS];
const BOOLEAN: Choice[] = [...EQUALITY, ...NULLS];

const isTime = (type: string): boolean => /^(date|time)/.test(type);
const TIME_WORDS: Partial<Record<Choice, string>> = {
  ge: "on or after",
  gt: "after",
  le: "on or before",
  lt: "before",
};

/** An operator in words that suit the type. */
export const wordsOf = (choice: Choice, type: string): string =>
  (isTime(type) ? TIME_WORDS[choice] : undefined) ?? CHOICES[choice].words;

/** Operators for a type, the default first. */
export function choicesFor(type: string): Choice[] {
  if (type === "boolean") return BOOLEAN;
  if (isNumeric(type)) return NUMBER;
  return isTime(type) ? TIME : TEXT;
}

/** Parses a filter. Column names may contain a colon, so the longest matching name wins, as in the service. */
export function parseFilter(text: string, columns: readonly string[]): Filter | undefined {
  const fitting = columns.filter((name) => text.startsWith(`${name}:`)).sort((a, b) => b.length - a.length);
  for (const column of fitting) {
    const rest = text.slice(column.length + 1);
    const colon = rest.indexOf(":");
    const operator = colon < 0 ? rest : rest.slice(0, colon);
    if (isOperator(operator)) return { column, operator, value: colon < 0 ? "" : rest.slice(colon + 1) };
  }
  return undefined;
}

export const printFilter = ({ column, operator, value }: Filter): string =>
  takesValue(operator) ? `${column}:${operator}:${value}` : `${column}:${operator}`;

/** Whether a choice has two ends, which are shown as `from .. to`. */
export const hasEnds = (choice: Choice): choice is "between" | "outside" =>
  choice === "between" || choice === "outside";

/** State of a column's field; `more`: further filters that it can't show. */
export interface FieldState {
  choice: Choice;
  text: string;
  more: boolean;
}

/** `unit`: of the column. */
export function fieldOf(filters: readonly Filter[], unit?: string): FieldState | undefined {
  const [first, second] = filters;
  if (!first) return undefined;
  const shown = (text: string) => shownValue(text, unit);
  const [from, to] = first.operator === "le" ? [second, first] : [first, second];
  if (filters.length === 2 && from?.operator === "ge" && to?.operator === "le")
    return { choice: "between", text: `${shown(from.value)} .. ${shown(to.value)}`, more: false };
  const values = hasEnds(first.operator) || LISTS.includes(first.operator) ? listOf(first.value) : undefined;
  const text = (values ?? [first.value]).map(shown).join(hasEnds(first.operator) ? " .. " : ", ");
  return { choice: first.operator, text, more: filters.length > 1 };
}

/** Values of a list: comma-separated, or a JSON array of strings. */
export function listOf(value: string): string[] | undefined {
  if (value === "") return [];
  if (!value.startsWith("[")) return value.split(",");
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) && parsed.every((one) => typeof one === "string") ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Filters of a field; none if empty. `unit`: of the column. @throws Error with the expected format */
export function filtersOf(column: string, type: string, choice: Choice, text: string, unit?: string): Filter[] {
  if (!takesValue(choice)) return [{ column, operator: choice as Operator, value: "" }];
  const trimmed = type === "string" || type === "json" ? text : text.trim();
  if (trimmed === "") return [];
  if (hasEnds(choice)) {
    const [from = "", to = ""] = trimmed.split(BETWEEN);
    return rangeOf(column, type, from, to, choice, unit);
  }
  if (choice === "in" || choice === "not_in") {
    const parts = trimmed.split(",").map((part) => checked(type, part.trim(), unit));
    return [{ column, operator: choice, value: JSON.stringify(parts.filter((part) => part !== "")) }];
  }
  const free = choice === "contains" || choice === "starts_with";
  return [{ column, operator: choice, value: free ? trimmed : bound(type, choice, checked(type, trimmed, unit)) }];
}

/** Filters for rows without a value, if that is among those entered; undefined if it isn't. @throws Error */
export function emptyFilters(
  column: string,
  type: string,
  choice: Choice,
  text: string,
  unit?: string,
): Filter[] | undefined {
  const isList = LISTS.includes(choice);
  const values = isList ? text.split(",").map((one) => one.trim()) : [text.trim()];
  if (!(isList || choice === "eq" || choice === "ne") || !values.includes(EMPTY)) return undefined;
  const others = values.filter((one) => one !== EMPTY && one !== "").join(",");
  if (choice === "in" && others !== "") throw new Error(`${EMPTY} can't be one of several values`);
  const operator = choice === "eq" || choice === "in" ? "is_null" : "is_not_null";
  return [...filtersOf(column, type, choice, others, unit), { column, operator, value: "" }];
}

/** Separators of a range's ends; a hyphen stands within dates, too. */
const BETWEEN = /\s*\.\.\s*|\s*[\u2013\u2014]\s*|\s+(?:-|to)\s+/;
const DAY_END = "T23:59:59.999999";

/** The value of an operator. A day includes all of its times. */
const bound = (type: string, choice: Choice, value: string): string =>
  (choice === "le" || choice === "gt") && type.startsWith("timestamp") && DATE.test(value) ? value + DAY_END : value;

const shownBound = (value: string): string => (value.endsWith(DAY_END) ? value.slice(0, -DAY_END.length) : value);

/** A value of a filter as fields show it. `unit`: of the column. */
export const shownValue = (value: string, unit: string | undefined): string =>
  unit === "percent" ? percentOf(value) : shownBound(value);

/** A mistake at one end of a range. */
export class RangeMistake extends Error {
  constructor(
    message: string,
    readonly end: "from" | "to",
  ) {
    super(message);
  }
}

/** Filters of a range, or of what is outside of it; an empty end is open. @throws RangeMistake */
export function rangeOf(
  column: string,
  type: string,
  from: string,
  to: string,
  choice: Choice,
  unit?: string,
): Filter[] {
  const read = (end: "from" | "to", text: string): string => {
    try {
      return text.trim() && checked(type, text.trim(), unit);
    } catch (thrown) {
      throw new RangeMistake(thrown instanceof Error ? thrown.message : String(thrown), end);
    }
  };
  const [least, most] = [read("from", from), read("to", to)];
  const isReversed = isNumeric(type) ? Number(least) > Number(most) : least.slice(0, most.length) > most;
  if (least && most && isReversed)
    throw new RangeMistake(
      `found ${to.trim()}, expected ${from.trim()} or ${isNumeric(type) ? "more" : "later"}`,
      "to",
    );
  const last = bound(type, "le", most);
  if (choice === "outside" && least && most)
    return [{ column, operator: "outside", value: JSON.stringify([least, last]) }];
  const [above, below] = choice === "outside" ? (["lt", "gt"] as const) : (["ge", "le"] as const);
  const found: Filter[] = [];
  if (least) found.push({ column, operator: above, value: least });
  if (most) found.push({ column, operator: below, value: last });
  return found;
}

/** A filter that the service refused, with its column. */
export interface Refusal {
  column: string;
  why: string;
}

/** Parses a refusal; undefined if it is about something else. */
export function refusalOf(message: string, columns: readonly string[]): Refusal | undefined {
  for (const column of columns) {
    const head = `\`filter\` on \`${column}\`: `;
    if (message.startsWith(head)) return { column, why: message.slice(head.length) };
  }
  return undefined;
}

const DIGITS = /^-?\d+(\.\d+)?$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?)?$/;

/** Formats of values that can be checked locally; the service checks the rest. */
const FORMS: { of: (type: string) => boolean; form: RegExp; expected: string }[] = [
  { of: (type) => /^u?int/.test(type), form: /^-?\d+$/, expected: "a whole number" },
  { of: (type) => type.startsWith("decimal"), form: DIGITS, expected: "a number like 12.50" },
  {
    of: (type) => type.startsWith("float"),
    form: /^-?(\d+(\.\d*)?(e-?\d+)?|inf|nan)$/i,
    expected: "a number like 1.5",
  },
  { of: (type) => type === "date", form: DATE, expected: `a date like 2013-01-31 or ${dayExample()}` },
  { of: (type) => type === "time", form: /^\d\d:\d\d:\d\d(\.\d+)?$/, expected: "a time like 05:00:00" },
  { of: (type) => type === "timestamp", form: TIMESTAMP, expected: "a time like 2013-01-31 or 2013-01-31T05:00:00" },
  {
    of: (type) => type === "timestamptz",
    form: /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?)?$/i,
    expected: "a time like 2013-01-31 or 2013-01-31T05:00:00Z",
  },
];

const digitsOf = (text: string): string | undefined => (DIGITS.test(text) ? text : plainNumber(text));

/** `12.5%` of the fraction 0.125. */
const percentOf = (text: string): string => (DIGITS.test(text) ? `${Number(`${text}e2`)}%` : text);

/** An amount without its currency; one in brackets is negative. */
const amountOf = (text: string): string => text.replace(/^\((.*)\)$/, "-$1").replace(/\s*\p{Sc}\s*/u, "");

/** A number as the locale writes it, an amount or a percentage, as plain digits; undefined if it isn't one. */
export function numberOf(value: string): string | undefined {
  const [, percents] = /^(.*?)\s*%$/.exec(value) ?? [];
  if (percents === undefined) return digitsOf(amountOf(value));
  const digits = digitsOf(percents);
  return digits && String(Number(`${digits}e-2`));
}

/** A value in the service's form, which may be typed as the locale writes it; a percentage without its sign, too. */
function checked(type: string, text: string, unit?: string): string {
  const value = unit === "percent" && /\d$/.test(text) ? `${text}%` : text;
  const wrong = FORMS.find(({ of, form }) => of(type) && !form.test(value));
  if (!wrong) return value;
  const read = isTime(type) && type !== "time" ? dayOf(value) : isNumeric(type) ? numberOf(value) : undefined;
  if (read === undefined || !wrong.form.test(read)) throw new Error(`found ${value}, expected ${wrong.expected}`);
  return read;
}

/** Placeholder of a field. */
export function hintOf(type: string, choice: Choice, unit?: string): string {
  if (unit === "percent") return hasEnds(choice) ? "0% .. 100%" : "like 12.5%";
  if (hasEnds(choice)) return isTime(type) ? "2013-01-01 .. 2013-01-31" : "0 .. 100";
  if (choice === "in" || choice === "not_in") return "a, b, c";
  return "any";
}
