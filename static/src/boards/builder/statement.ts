/** SQL of a chart. Identifiers and texts are quoted by `format/sql` only. */
import { condition } from "../../format/condition";
import { identifier, literal, textOrEmpty } from "../../format/sql";
import { type ChartChoice, type Dimension, namesOf, OTHER, type ParamUse, SAMPLE_ROWS, type Source } from "./choice";

/** Maximum number of rows of an unaggregated result. */
const ROWS_MAX = 1_000;
/** Name of a query's result in the statement around it. */
const RESULT = "result";

const isString = (type: string): boolean => /^(?:string|varchar)$/i.test(type);

/** Condition of a parameter; no choice keeps all rows. */
function paramCondition({ param, kind, column, empty }: ParamUse): string {
  const name = identifier(column);
  switch (kind) {
    case "date_range":
      return `($${param}_start IS NULL OR CAST(${name} AS DATE) BETWEEN $${param}_start AND $${param}_end)`;
    case "select":
      return `($${param} IS NULL OR list_contains($${param}, ${empty ? textOrEmpty(column) : `CAST(${name} AS VARCHAR)`}))`;
    case "number":
      return `($${param} IS NULL OR ${name} >= $${param})`;
    case "text":
      return `($${param} IS NULL OR contains(lower(CAST(${name} AS VARCHAR)), lower($${param})))`;
  }
}

function conditionsOf({ filters = [], params = [] }: ChartChoice): string[] {
  return [...filters.map((filter) => condition(filter, filter.type)), ...params.map(paramCondition)];
}

const whereOf = (conditions: string[]): string[] =>
  conditions.length > 0 ? [`WHERE ${conditions.join("\n  AND ")}`] : [];

function measureOf({ aggregate, measure = "" }: ChartChoice): string {
  const name = identifier(measure);
  switch (aggregate) {
    case "count":
      return "count(*)";
    case "distinct":
      return `count(DISTINCT ${name})`;
    case "none":
      return name;
    case "sum":
    case "avg":
    case "median":
    case "min":
    case "max":
      return `${aggregate}(${name})`;
  }
}

/** The text of a query without trailing semicolons and blanks. */
const withoutSemicolons = (sql: string): string => sql.trim().replace(/[;\s]+$/, "");

const isGrouping = ({ grain, bin, top }: Dimension): boolean =>
  grain !== undefined || bin !== undefined || top !== undefined;

/** Whether the rows of the query are drawn as they are. */
const isPlain = (choice: ChartChoice): boolean =>
  choice.aggregate === "none" &&
  choice.kind !== "scatter" &&
  conditionsOf(choice).length === 0 &&
  ![choice.by, choice.split].some((one) => one && isGrouping(one));

class StatementBuilder {
  readonly ctes: string[] = [];
  readonly from: string;
  readonly conditions: string[];

  constructor(readonly choice: ChartChoice) {
    const { source } = choice;
    this.conditions = conditionsOf(choice);
    if ("table" in source) this.from = identifier(source.table);
    else {
      this.from = RESULT;
      this.ctes.push(`${RESULT} AS (\n${withoutSemicolons(source.sql)}\n)`);
    }
  }

  finish(lines: string[]): string {
    const start = this.ctes.length > 0 ? [`WITH ${this.ctes.join(",\n")}`] : [];
    return [...start, ...lines].join("\n");
  }

  /** Adds the values of a column with the largest measure. */
  private largest(column: string, limit: number): string {
    const name = identifier(column);
    const own = identifier(`top_${column}`);
    const lines = [
      `  SELECT ${name} FROM ${this.from}`,
      `  WHERE ${[`${name} IS NOT NULL`, ...this.conditions].join("\n    AND ")}`,
      `  GROUP BY 1 ORDER BY ${measureOf(this.choice)} DESC NULLS LAST, 1 LIMIT ${limit}`,
    ];
    const text = `${own} AS (\n${lines.join("\n")}\n)`;
    if (!this.ctes.includes(text)) this.ctes.push(text);
    return own;
  }

  /** Expression of a dimension. */
  dimension({ column, type, grain, bin, top }: Dimension): string {
    const name = identifier(column);
    if (grain) return grain === "day" && type === "date" ? name : `date_trunc(${literal(grain)}, ${name})`;
    if (bin !== undefined) return `floor(${name} / ${bin}) * ${bin}`;
    if (top === undefined || this.choice.others === false) return name;
    const text = isString(type) ? name : `CAST(${name} AS VARCHAR)`;
    return `CASE WHEN ${name} NOT IN (SELECT ${name} FROM ${this.largest(column, top)}) THEN ${literal(OTHER)} ELSE ${text} END`;
  }

  /** Keeps rows of the largest values, if others aren't grouped. */
  kept({ column, top }: Dimension): string[] {
    if (top === undefined || this.choice.others !== false) return [];
    const name = identifier(column);
    return [`${name} IN (SELECT ${name} FROM ${this.largest(column, top)})`];
  }
}

function scatter(builder: StatementBuilder): string {
  const { by, measure = "", split } = builder.choice;
  const [x, y] = [identifier(by?.column ?? ""), identifier(measure)];
  const names = [...new Set([x, y, ...(split ? [identifier(split.column)] : [])])].join(", ");
  const inner = [
    `  SELECT ${names} FROM ${builder.from}`,
    `  WHERE ${[`${x} IS NOT NULL`, `${y} IS NOT NULL`, ...builder.conditions].join("\n    AND ")}`,
  ];
  return builder.finish([
    "SELECT * FROM (",
    ...inner,
    `) AS points USING SAMPLE reservoir(${SAMPLE_ROWS} ROWS) REPEATABLE (1)`,
  ]);
}

function grouped(builder: StatementBuilder): string {
  const { choice } = builder;
  const names = namesOf(choice);
  const dimensions = [choice.by, choice.split].filter((one) => one !== undefined);
  const expressions = dimensions.map((one) => builder.dimension(one));
  const named = [names.by, names.split].flatMap((one) => (one === undefined ? [] : [identifier(one)]));
  const measure = identifier(names.measure);
  const selected = expressions.map((text, at) => (text === named[at] ? text : `${text} AS ${named[at] ?? ""}`));
  const plain = dimensions.every((one) => one.grain === undefined && one.bin === undefined);
  const missing = plain
    ? []
    : dimensions.filter((one) => one.grain ?? one.bin).map((one) => `${identifier(one.column)} IS NOT NULL`);
  const kept = dimensions.flatMap((one) => builder.kept(one));
  const lines = [
    `SELECT ${[...selected, `${measureOf(choice)} AS ${measure}`].join(", ")}`,
    `FROM ${builder.from}`,
    ...whereOf([...missing, ...kept, ...builder.conditions]),
    ...(dimensions.length > 0 ? ["GROUP BY ALL"] : []),
  ];
  const [first, second] = named;
  if (first === undefined) return builder.finish(lines);
  const byName = (choice.sort ?? "value") === "name";
  const way = choice.sort === "ascending" ? "" : " DESC";
  const others = dimensions.some((one) => one.top !== undefined) && choice.others !== false && !byName;
  if (!others && (byName || second === undefined)) {
    const order = byName ? (second === undefined ? "1" : "1, 2") : `2${way} NULLS LAST, 1`;
    return builder.finish([...lines, `ORDER BY ${order}`]);
  }
  // Bars are sorted by their total, and the others come last.
  builder.ctes.push(`grouped AS (\n${lines.map((line) => `  ${line.replaceAll("\n", "\n  ")}`).join("\n")}\n)`);
  const last =
    choice.by?.top !== undefined && choice.others !== false ? [`${first} IS NOT DISTINCT FROM ${literal(OTHER)}`] : [];
  const size = second === undefined ? measure : `sum(${measure}) OVER (PARTITION BY ${first})`;
  return builder.finish([
    "SELECT * FROM grouped",
    `ORDER BY ${[...last, `${size}${way} NULLS LAST`, "1", ...(second ? ["2"] : [])].join(", ")}`,
  ]);
}

/** The statement that a chart shows. */
export function statementOf(choice: ChartChoice): string {
  const { source, kind, aggregate, by } = choice;
  if ("sql" in source && isPlain(choice)) return withoutSemicolons(source.sql);
  const builder = new StatementBuilder(choice);
  if (kind === "scatter") return scatter(builder);
  if (aggregate !== "none")
    return grouped(
      kind === "number" ? new StatementBuilder({ ...choice, by: undefined, split: undefined } as never) : builder,
    );
  const name = by && identifier(by.column);
  const limit = "table" in source ? [`LIMIT ${ROWS_MAX}`] : [];
  const columns = choice.more && "table" in source ? choice.more.map(identifier).join(", ") : "*";
  const order = name !== undefined && choice.sort === "name" ? [`ORDER BY ${name}`] : [];
  return builder.finish([
    `SELECT ${columns}`,
    `FROM ${builder.from}`,
    ...whereOf(builder.conditions),
    ...order,
    ...limit,
  ]);
}

/** The first values of a column, as suggestions. */
export function valuesSql(source: Source, column: string, limit: number): string {
  const builder = new StatementBuilder({ source, kind: "table", aggregate: "none" });
  const name = identifier(column);
  return builder.finish([`SELECT DISTINCT ${name} FROM ${builder.from} ORDER BY 1 NULLS FIRST LIMIT ${limit}`]);
}
