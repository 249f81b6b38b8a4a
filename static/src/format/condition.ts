/** SQL of filters. */
import { listOf, type Filter } from "./filter";
import { identifier, literal } from "./sql";

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
    case "outside": {
      const [first = "", last = ""] = listOf(text) ?? [];
      return `(${name} < ${value(first, type)} OR ${name} > ${value(last, type)})`;
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
