/** SQL for a filtered and sorted table, for downloads and the query editor. */
import type { SortKey } from "../../components/grid";
import { condition } from "../../format/condition";
import type { Filter } from "../../format/filter";
import { identifier } from "../../format/sql";

export interface Chosen {
  table: string;
  columns: readonly { name: string; type: string }[];
  filters: readonly Filter[];
  sort: readonly SortKey[];
}

/** `limit` undefined: all rows. */
export function statement({ table, columns, filters, sort }: Chosen, limit?: number): string {
  const types = new Map(columns.map(({ name, type }) => [name, type]));
  const lines = [`SELECT *`, `FROM ${identifier(table)}`];
  const conditions = filters.map((filter) => condition(filter, types.get(filter.column) ?? "string"));
  if (conditions.length > 0) lines.push(`WHERE ${conditions.join("\n  AND ")}`);
  if (sort.length > 0) {
    const keys = sort.map(({ column, descending }) => `${identifier(column)}${descending ? " DESC" : ""} NULLS LAST`);
    lines.push(`ORDER BY ${keys.join(", ")}`);
  }
  if (limit !== undefined) lines.push(`LIMIT ${limit}`);
  return lines.join("\n");
}

/** Parses `col,-col`. Names may contain a comma or start with `-`, so the longest match wins. */
export function parseSort(text: string, columns: readonly string[]): SortKey[] | undefined {
  const found: SortKey[] = [];
  let rest = text;
  while (rest !== "") {
    const key = nextKey(rest, columns);
    if (!key) return undefined;
    if (!found.some((one) => one.column === key.column)) found.push(key);
    rest = rest.slice(key.column.length + (key.descending ? 1 : 0));
    if (rest.startsWith(",")) rest = rest.slice(1);
  }
  return found;
}

function nextKey(text: string, columns: readonly string[]): SortKey | undefined {
  for (const descending of [false, true]) {
    if (descending && !text.startsWith("-")) continue;
    const body = descending ? text.slice(1) : text;
    const fitting = columns.filter((name) => body.startsWith(name) && ["", ","].includes(body.charAt(name.length)));
    const [column] = fitting.sort((a, b) => b.length - a.length);
    if (column !== undefined) return { column, descending };
  }
  return undefined;
}

export const printSort = (sort: readonly SortKey[]): string =>
  sort.map(({ column, descending }) => (descending ? `-${column}` : column)).join(",");
