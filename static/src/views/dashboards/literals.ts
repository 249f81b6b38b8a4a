/** Replaces parameters of a query by their values, for people to read and edit. */

import { literal as quoted } from "../../format/sql";

/** Matches strings, names, comments and `$tag$ … $tag$` to skip, and parameters. */
const TOKENS =
  /e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|\$(\w+)/gi;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function literal(value: unknown, isDay = false): string {
  if (value === null || value === undefined) return "NULL";
  if (Array.isArray(value)) return `[${value.map((one) => literal(one)).join(", ")}]`;
  if (typeof value === "number" || typeof value === "boolean") return String(value).toUpperCase();
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return isDay && DAY.test(text) ? `DATE ${quoted(text)}` : quoted(text);
}

interface Chosen {
  name: string;
  type: string;
}

/** The parameters that a statement uses. */
export function usedParams<P extends Chosen>(sql: string, params: readonly P[]): P[] {
  const names = new Set([...sql.matchAll(TOKENS)].map(([, , name]) => name));
  return params.filter(({ name, type }) =>
    type === "date_range" ? names.has(`${name}_start`) || names.has(`${name}_end`) : names.has(name),
  );
}

/** @param values parameter values as resolved by the service; a range has its first and last day */
export function withLiterals(sql: string, params: Chosen[], values: Record<string, unknown>): string {
  const texts = new Map<string, string>();
  for (const { name, type } of params) {
    const value = values[name];
    if (type === "date_range") {
      const range = (value ?? {}) as { start?: string; end?: string };
      texts.set(`${name}_start`, literal(range.start, true));
      texts.set(`${name}_end`, literal(range.end, true));
    } else texts.set(name, literal(value, type === "date"));
  }
  return sql.replace(TOKENS, (found, _tag, name: string | undefined) =>
    name === undefined ? found : (texts.get(name) ?? found),
  );
}
