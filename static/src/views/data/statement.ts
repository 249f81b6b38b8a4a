/** SQL for a filtered and sorted table, for downloads and the query editor. */
import type { SortKey } from "../../components/grid";
import { identifier } from "../../format/sql";
import { listOf, type Filter } from "./filter";

export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** DuckDB names of types. */
function sqlType(type: string): string {
  const names: Record<string, string> = {
    int8: "TINYINT",
    int16: "SMALLINT",
    int32: "INTEGER",
    int64: "BIGINT",
    uint8: "UTINYINT",
    uint16: "USMALLINT",
    uint32: "UINTEGER",
    uint64: "UBIGINT",
    float32: "FLOAT",
    float64: "DOUBLE",
  };
  return names[type] ?? type.toUpperCase();
}

function value(text: string, type: string): string {
  if (type === "string" || type === "json") return literal(text);
  if (/^(u?int|decimal)/.test(type) && /^-?\d+(\.\d+)?$/.test(text)) return text;
  if (type === "boolean" && (text === "true" || text === "false")) return text;
  return `CAST(${literal(text)} AS ${sqlType(type)})`;
}

const COMPARED = { eq: "=", ne: "IS DISTINCT FROM", lt: "<", le: "<=", gt: ">", ge: ">=" } as const;

/** SQL of a filter, with the service's semantics. */
export function condition({ column, operator, value: text }: Filter, type: string): string {
  const whole = identifier(column);
  const asText = type === "string" ? whole : `CAST(${whole} AS VARCHAR)`;
  const name = type === "json" ? asText : whole;
  switch (operator) {
    case "is_null":
      return `${name} IS NULL`;
    case "is_not_null":
      return `${name} IS NOT NULL`;
    case "contains":
      return `contains(${asText}, ${literal(text)})`;
    case "starts_with":
      return `starts_with(${asText}, ${literal(text)})`;
    case "in":
    case "not_in": {
      const values = listOf(text) ?? [];
      if (values.length === 0) return operator === "in" ? "false" : "true";
      const list = values.map((one) => value(one, type)).join(", ");
      return operator === "in" ? `${name} IN (${list})` : `(${name} IS NULL OR ${name} NOT IN (${list}))`;
    }
    case "eq":
    case "ne":
    case "lt":
    case "le":
    case "gt":
    case "ge":
      return `${name} ${COMPARED[operator]} ${value(text, type)}`;
  }
}

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
