/** Names of types for people; the exact type is the title, or in parentheses. */
const INTEGERS = /^u?(tinyint|smallint|integer|bigint|hugeint|int8|int16|int32|int64)$/i;

/** `whole number` for hugeint, `decimal number` for decimal(38,2), `text` for string. */
export function typeWords(type: string): string {
  const list = /^(.*)\[\]$/.exec(type)?.[1];
  if (list !== undefined) return `list of ${typeWords(list)}`;
  if (INTEGERS.test(type)) return "whole number";
  if (/^decimal/i.test(type)) return "decimal number";
  if (/^(float32|float64|float|double|real)$/i.test(type)) return "number";
  if (/^(string|varchar)$/i.test(type)) return "text";
  if (/^timestamp(tz| with time zone)/i.test(type)) return "time with zone";
  if (/^timestamp/i.test(type)) return "date and time";
  if (/^bool(ean)?$/i.test(type)) return "yes or no";
  return type.toLowerCase();
}

/** Whether a column may have nulls, below `Empty cells`. */
export const emptyCells = (nullable: boolean): string => (nullable ? "allowed" : "not allowed");

/** `whole number (int64)`, `date`: with the exact type, where that says more. */
export function typeWithName(type: string): string {
  const words = typeWords(type);
  return type === words ? type : `${words} (${type})`;
}
