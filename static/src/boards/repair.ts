/** Problems of queries that no longer fit the tables: in plain words, and with a proposed repair. */
import type { ConfigRename, DashboardProblem } from "../api/types";
import { identifier } from "../format/sql";

/** Steps from one text to another: letters put in, left out or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next.push(
        Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    row = next;
  }
  return row[b.length] ?? 0;
}

/** A name that a query uses, and the one that is meant. */
interface Replacement {
  missing: string;
  by: string;
}

const MISSING = /(?:column|table with name|table|field)\s+(?:named\s+)?[`"]?([\p{L}\p{N}_]+)[`"]?/iu;
const CANDIDATES = /(?:candidate (?:bindings?|columns?)|did you mean)[^"`]*((?:["`][^"`]+["`][,\s]*(?:and|or)?\s*)+)/i;

const NO_COLUMN = [
  /referenced column "([^"]+)" (?:was )?not found/i,
  /does not have a column named "([^"]+)"/i,
  /column "([^"]+)" (?:referenced that exists|does not exist)/i,
];
const NO_TABLE = [/table with name "?([\p{L}\p{N}_]+)"? does not exist/iu, /referenced table "([^"]+)" not found/i];

const first = (patterns: RegExp[], message: string): string | undefined =>
  patterns.map((one) => one.exec(message)?.[1]).find((name) => name !== undefined);

/** The current name of a table or column that was renamed; undefined if it wasn't, or has several. */
function renamed(message: string, renames: ConfigRename[]): Replacement | undefined {
  const column = first(NO_COLUMN, message);
  const missing = column ?? first(NO_TABLE, message);
  if (missing === undefined) return undefined;
  const fits = renames.filter(
    ({ table, from }) => (table === null) === (column === undefined) && from.toLowerCase() === missing.toLowerCase(),
  );
  const [by, ...others] = [...new Set(fits.map(({ to }) => to))];
  return by === undefined || others.length > 0 ? undefined : { missing, by };
}

/**
 * The replacement for the missing name of a message: its new name in the config, or the closest one that the
 * message has; undefined if there is none.
 */
export function replacementOf(message: string, renames: ConfigRename[] = []): Replacement | undefined {
  const known = renamed(message, renames);
  if (known) return known;
  const missing = MISSING.exec(message)?.[1];
  const listed = CANDIDATES.exec(message)?.[1];
  if (missing === undefined || listed === undefined) return undefined;
  const candidates = [...listed.matchAll(/["`]([^"`]+)["`]/g)].map(([, name = ""]) => name.split(".").at(-1) ?? name);
  const [by] = candidates
    .filter((name) => name !== missing)
    .sort((a, b) => distance(missing, a) - distance(missing, b));
  return by === undefined ? undefined : { missing, by };
}

/** Whether the missing name of a message was renamed in the config. */
export const wasRenamed = (message: string, renames: ConfigRename[]): boolean =>
  renamed(message, renames) !== undefined;

/** "Replace `amount` by `total`." */
export function repairOf(message: string, renames: ConfigRename[] = []): string | undefined {
  const found = replacementOf(message, renames);
  return found && `Replace \`${found.missing}\` by \`${found.by}\`.`;
}

/** Rewords known DuckDB messages for people who don't write SQL; other messages are unchanged. */
export function plainProblem(message: string): string {
  const column = first(NO_COLUMN, message);
  if (column !== undefined) return `The column \`${column}\` doesn't exist`;
  const table = first(NO_TABLE, message);
  if (table !== undefined) return `The table \`${table}\` doesn't exist`;
  return message;
}

const NO_FUNCTION = /no function matches .*?'(\w+)\(/i;

/** Why a query would no longer work, in plain words; undefined for messages that aren't known. */
export function brokenBy(message: string): string | undefined {
  const column = first(NO_COLUMN, message);
  if (column !== undefined) return `it uses the column \`${column}\`, which is gone`;
  const table = first(NO_TABLE, message);
  if (table !== undefined) return `it uses the table \`${table}\`, which is gone`;
  const call = NO_FUNCTION.exec(message)?.[1];
  if (call !== undefined) return `it uses \`${call}\`, which doesn't take the new type of the column`;
  return message.startsWith("panels or options use ") ? message : undefined;
}

/** Index of a line and column, both from 1; columns are characters. */
function indexOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}

/**
 * Whether the name at an index is a whole item of a SELECT list, so that it also names a column of the result. Looks at
 * the words around it only: a wrong guess is reported by the next validation.
 */
function namesResult(text: string, from: number, end: number): boolean {
  const before = text.slice(0, from);
  const clause = [...before.matchAll(/\b(select|from|where|by|having|on|and|or)\b|[()]/gi)].at(-1)?.[0].toLowerCase();
  return (
    clause === "select" &&
    /(\bselect|,)\s*([\p{L}\p{N}_]+\.)?$/iu.test(before) &&
    /^\s*(,|from\b)/i.test(text.slice(end))
  );
}

/** The text of a dashboard or query with a problem's missing name replaced at its place; undefined if it can't be. */
export function repaired(
  text: string,
  { message, line, column }: Pick<DashboardProblem, "message" | "line" | "column">,
  renames: ConfigRename[] = [],
): string | undefined {
  const found = replacementOf(message, renames);
  if (!found) return undefined;
  const start = indexOf(text, line, column);
  const name = found.missing.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const at = new RegExp(`^((?:[\\p{L}\\p{N}_]+\\.)?)("?)${name}\\2(?![\\p{L}\\p{N}_])`, "iu").exec(text.slice(start));
  if (!at) return undefined;
  const [whole, table = ""] = at;
  const end = start + whole.length;
  const by = identifier(found.by);
  // Quotes end a text of YAML in double quotes.
  if (by.startsWith('"') && /^[^\n]*sql:\s*"/m.test(text.split("\n")[line - 1] ?? "")) return undefined;
  const alias = namesResult(text, start, end) ? ` AS ${identifier(found.missing)}` : "";
  return text.slice(0, start) + table + by + alias + text.slice(end);
}
