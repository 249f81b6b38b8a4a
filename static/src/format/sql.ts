/** Quotes SQL identifiers and texts. */
import { EMPTY } from "./values";

const PLAIN = /^[a-z_][a-z0-9_]*$/i;
/** Words that DuckDB doesn't accept as a column name without quotes. */
const RESERVED = new Set(
  (
    "all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check " +
    "collate collation column concurrently constraint create cross default deferrable desc describe distinct do else " +
    "end except false fetch for foreign freeze from full glob group having ilike in initially inner intersect into is " +
    "isnull join lambda lateral leading left like limit natural not notnull null offset on only or order outer " +
    "overlaps pivot placing positional primary qualify references returning right select semi show similar some " +
    "summarize symmetric table tablesample then to trailing true union unique unpivot using variadic verbose when " +
    "where window with"
  ).split(" "),
);

/** A quoted identifier. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** An identifier, quoted if needed. */
export const identifier = (name: string): string =>
  PLAIN.test(name) && !RESERVED.has(name.toLowerCase()) ? name : quoted(name);

/** A quoted text. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A column as text, which says so if there is no value. */
export const textOrEmpty = (column: string): string =>
  `coalesce(CAST(${identifier(column)} AS VARCHAR), ${literal(EMPTY)})`;
