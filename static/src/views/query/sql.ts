/** Names as SQL writes them. */
const PLAIN = /^[a-z_][a-z0-9_]*$/;
/** Words that stand for something else unless they are quoted; DuckDB's reserved ones. */
const RESERVED = new Set(
  (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default " +
    "deferrable desc describe distinct do else end except false fetch for foreign from group having in initially " +
    "intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify " +
    "references returning select show some summarize symmetric table then to trailing true union unique unpivot using " +
    "variadic when where window with"
  ).split(" "),
);

export function identifier(name: string): string {
  return PLAIN.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The query that shows what a table is like. */
export const firstRows = (table: string): string => `SELECT *\nFROM ${identifier(table)}\nLIMIT 100`;
