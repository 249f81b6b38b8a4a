/** Why a row is rejected, in words for people who don't know the config. */
import { patternOf } from "./time-pattern";

const EXPECTED = /expected (\w+)/;
/** Why a value isn't of its type, after the value. */
const WHY = /found `[^`]*`: (.*)$/s;

const NOT_OF_TYPE: readonly [RegExp, string][] = [
  [/^u?int/, "isn't a whole number in this column's format"],
  [/^(?:decimal|float)/, "isn't a number in this column's format"],
  [/^timestamp/, "isn't a date and time in this column's format"],
  [/^date/, "isn't a date in this column's format"],
  [/^time/, "isn't a time in this column's format"],
  [/^bool/, "isn't one of this column's words for true and false"],
];

const REASONS: Readonly<Record<string, string>> = {
  null_not_allowed: "missing value",
  ragged_row: "wrong number of fields",
};

/** A reason in a list. */
export const reasonWords = (reason: string): string => REASONS[reason] ?? reason.replaceAll("_", " ");

/** The reason, without the names of types and settings; others as the service writes them. */
export function rejectWords({
  reason,
  value,
  message,
}: {
  reason?: string;
  value: string | null;
  message: string;
}): string {
  if (reason === "null_not_allowed") return "The cell is empty, and this column needs a value.";
  const isWide = reason === "out_of_range";
  if (!(isWide || reason === "wrong_type") || value === null) return message;
  const type = EXPECTED.exec(message)?.[1] ?? "";
  const words = isWide
    ? "is too large or too small for this column"
    : NOT_OF_TYPE.find(([pattern]) => pattern.test(type))?.[1];
  return words === undefined ? message : `\`${value.replaceAll("`", "'")}\` ${words}${particulars(message)}.`;
}

/** The formats that a value isn't written in, or else the cause, unless it names settings. */
function particulars(message: string): string {
  const why = WHY.exec(message)?.[1] ?? "";
  const formats = [...why.matchAll(/`(%[^`]+|YYYY[^`]*|HH:MM:SS)`/g)].map(([, format = ""]) => patternOf(format));
  if (/^(it matches|it does not|without)/.test(why) && formats.length > 0) return `, ${formats.join(" or ")}`;
  return why === "" || /`[^%`][^`]*`/.test(why.replace(/`%[^`]*`/g, "")) ? "" : `: ${why}`;
}

/** The message of a failure; one about a value, without the names of types and settings. */
export function failureWords(message: string): string {
  const [, place, value] = /^(.*column `[^`]+`: )expected .*?found `([^`]*)`/s.exec(message) ?? [];
  return place === undefined || value === undefined
    ? // The limit is one of the table, whichever of its files the run read.
      message.replace(/(: \S+ of \S+ rows) rejected, but /g, "$1 in all its files rejected, but ")
    : place + rejectWords({ reason: "wrong_type", value, message });
}
