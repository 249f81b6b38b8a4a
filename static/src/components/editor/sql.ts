/** SQL completion: tables, columns (also after an alias), functions and keywords. */
import { snippet, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { keywordCompletionSource, schemaCompletionSource, SQLDialect } from "@codemirror/lang-sql";
import { syntaxTree } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { identifier } from "../../format/sql";
import { functions } from "./duckdb";

const KEYWORDS =
  "select from where group by all order asc desc nulls first last limit offset having qualify window over partition " +
  "rows range groups between unbounded preceding following current row exclude replace rename distinct on as with recursive materialized " +
  "union intersect except join inner left right full outer cross lateral natural semi anti asof positional using " +
  "and or not in is null like ilike similar to escape exists any some case when then else end cast try_cast " +
  "filter within values pivot unpivot for include sample using tablesample interval collate at time zone " +
  "true false describe summarize explain show extract";
const TYPES =
  "boolean tinyint smallint integer int bigint hugeint utinyint usmallint uinteger ubigint float real double decimal " +
  "numeric varchar text char blob date time timestamp timestamptz interval uuid json list struct map";

const DuckDb = SQLDialect.define({
  keywords: KEYWORDS,
  types: TYPES,
  builtin: "",
  operatorChars: "+-*/<>=~!@#%^&|?:",
  identifierQuotes: '"',
  specialVar: "$",
  doubleDollarQuotedStrings: true,
  caseInsensitiveIdentifiers: true,
});

type Tables = Record<string, Completion[]>;

const QUIET = ["String", "LineComment", "BlockComment", "QuotedIdentifier", "Number"];

/** Columns of the tables named in the text; of all tables if there are none. */
export function columnsIn(text: string, tables: Tables): Completion[] {
  const words = new Set(text.toLowerCase().match(/[a-z_][a-z0-9_]*/g) ?? []);
  const named = Object.entries(tables).filter(([table]) => words.has(table.toLowerCase()));
  const found = new Map<string, Completion>();
  for (const [table, columns] of named.length > 0 ? named : Object.entries(tables))
    for (const column of columns) {
      const before = found.get(column.label);
      const detail = [column.detail, before ? "several tables" : table].filter(Boolean).join(" · ");
      found.set(column.label, { ...column, type: "property", detail, apply: column.apply ?? identifier(column.label) });
    }
  return [...found.values()];
}

const called: Completion[] = functions.map((one) => ({
  ...one,
  apply: one.detail === "()" ? `${one.label}()` : snippet(`${one.label}(\${})`),
}));

function names(tables: () => Tables) {
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[A-Za-z_][\w]*/);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(Math.max(0, from - 1), from);
    const node = syntaxTree(context.state).resolveInner(context.pos, -1);
    if (before === "." || before === "$" || QUIET.includes(node.name)) return null;
    const columns = columnsIn(context.state.sliceDoc(), tables());
    return { from, options: [...columns, ...called], validFor: /^\w*$/ };
  };
}

/** The language with its completion; `tables` is read on each use. */
export function duckDb(tables: () => Tables): Extension[] {
  const { language } = DuckDb;
  const ofTables = (context: CompletionContext) =>
    schemaCompletionSource({ dialect: DuckDb, schema: tables() })(context);
  const keywords = keywordCompletionSource(DuckDb, true, (label, type) => ({
    label: type === "type" ? label.toLowerCase() : label,
    type,
    boost: type === "keyword" ? -20 : -30,
  }));
  const sources = [ofTables, names(tables), keywords];
  return [language, ...sources.map((autocomplete) => language.data.of({ autocomplete }))];
}
