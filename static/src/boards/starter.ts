/** Generates a starter dashboard for a table: row count, a suitable chart, sample rows. */
import { api, ask } from "../api/client";
import type { Column, QueryAnswer, Row, Table } from "../api/types";
import { guessChart, type ChartSpec } from "../components/chart";
import { identifier } from "../format/sql";
import { summedColumn } from "../format/summed";
import { familyOf, numeric } from "../format/values";

const COLUMNS_MAX = 12;
const BARS_MAX = 20;
/** Longer spans are charted by month. */
const DAYS_MAX = 400;
const WORDS_SEEN = 12;

const yaml = (text: string): string =>
  /^[A-Za-z][\w -]*\w$/.test(text) && !/^(?:true|false|null|yes|no|on|off)$/i.test(text) ? text : JSON.stringify(text);

export interface Found {
  /** A date or time column. */
  time: Column | undefined;
  byMonth: boolean;
  /** A column with few distinct strings. */
  word: Column | undefined;
  /** A numeric column that is a measure. */
  measure: Column | undefined;
  /** A measure whose sum makes sense. */
  sum: Column | undefined;
}

const asked = (slug: string, sql: string): Promise<QueryAnswer> =>
  ask(api.POST("/api/p/{pipeline}/query", { params: { path: { pipeline: slug } }, body: { sql } }));

const usable = ({ name }: Column): boolean => !/\p{Cc}/u.test(name);
const isDay = ({ type }: Column): boolean => /^(?:date|timestamp)/i.test(type);
const isMeasure = ({ name, type }: Column): boolean =>
  familyOf(type) === "number" && !/(?:^|_)(?:id|key|code|zip|year|month|day|hour|number|no)$/i.test(name);

/** Finds the columns of a table that a chart can use. */
async function look(slug: string, table: Table): Promise<Found> {
  const columns = table.schema.filter(usable);
  const time = columns.find(isDay);
  const words = columns.filter(({ type }) => /^(?:string|varchar|boolean)/i.test(type)).slice(0, WORDS_SEEN);
  const parts = [
    ...(time ? [`date_diff('day', min(${identifier(time.name)}), max(${identifier(time.name)}))`] : ["0"]),
    ...words.map(({ name }) => `approx_count_distinct(${identifier(name)})`),
  ];
  const answer = await asked(slug, `SELECT ${parts.join(", ")} FROM ${identifier(table.name)}`);
  const [days = 0, ...counts] = ((answer.rows as Row[])[0] ?? []).map((cell) => numeric(cell) ?? 0);
  const word = words.find((_, at) => (counts[at] ?? 0) > 1 && (counts[at] ?? 0) <= 60);
  const sum = summedColumn(columns.filter(isMeasure));
  return {
    time: days > 0 ? time : undefined,
    byMonth: days > DAYS_MAX,
    word,
    measure: sum ?? columns.find(isMeasure),
    sum,
  };
}

interface Chart {
  sql: string[];
  title: string;
  /** Name of the measure in the query. */
  field: string;
}

/** Query of the chart, without the filter on the period. */
function chartOf(table: string, { time, byMonth, word, sum }: Found, where: string[]): Chart | undefined {
  const from = identifier(table);
  const field = sum?.name ?? "rows";
  const measured = sum ? `sum(${identifier(sum.name)}) AS ${identifier(sum.name)}` : 'count(*) AS "rows"';
  const what = sum?.name ?? "Rows";
  if (time) {
    const unit = byMonth ? "month" : "day";
    return {
      field,
      title: `${what} by ${unit}`,
      sql: [
        `SELECT date_trunc('${unit}', ${identifier(time.name)}) AS "${unit}", ${measured}`,
        `FROM ${from}`,
        ...where,
        "GROUP BY ALL",
        "ORDER BY 1",
      ],
    };
  }
  if (!word) return undefined;
  return {
    field,
    title: `${what} by ${word.name}`,
    sql: [
      `SELECT ${identifier(word.name)}, ${measured}`,
      `FROM ${from}`,
      "GROUP BY ALL",
      `ORDER BY 2 DESC LIMIT ${BARS_MAX}`,
    ],
  };
}

const block = (lines: string[]): string[] => ["    sql: |", ...lines.map((line) => `      ${line}`)];

function chartPanel(spec: ChartSpec, { title, field }: Chart): string[] {
  const y =
    field === "rows" ? "{ field: rows, title: Rows, format: integer }" : `{ field: ${yaml(field)}, format: number }`;
  return [
    `  - id: chart`,
    `    type: ${spec.type === "line" || spec.type === "bar" ? spec.type : "bar"}`,
    `    title: ${yaml(title)}`,
    `    query: chart`,
    `    x: ${yaml(spec.x.field)}`,
    `    y: [${y}]`,
    ...(spec.horizontal ? ["    horizontal: true"] : []),
    `    width: 12`,
    `    height: 320`,
  ];
}

/** KPI panels, which share the first row. */
function kpis({ measure, sum, word }: Found): { sql: string; panel: string }[] {
  const found = [{ sql: 'count(*) AS "rows"', id: "rows", title: "Rows", format: "integer" }];
  if (sum)
    found.push({
      sql: `sum(${identifier(sum.name)}) AS total`,
      id: "total",
      title: `Total ${sum.name}`,
      format: "number",
    });
  if (measure)
    found.push({
      sql: `avg(${identifier(measure.name)}) AS average`,
      id: "average",
      title: `Average ${measure.name}`,
      format: "number",
    });
  if (word && !sum)
    found.push({
      sql: `count(DISTINCT ${identifier(word.name)}) AS kinds`,
      id: "kinds",
      title: `Distinct ${word.name}`,
      format: "integer",
    });
  return found.map(({ sql, id, title, format }) => ({
    sql,
    panel: `  - { id: ${id}, type: kpi, title: ${yaml(title)}, query: totals, value: { field: ${id}, format: ${format} }, width: ${12 / found.length} }`,
  }));
}

/** The YAML document. */
export function starterText(table: Table, found: Found, spec: ChartSpec | undefined, chart: Chart | undefined): string {
  const { time } = found;
  const numbers = kpis(found);
  const shown = table.schema.filter(usable).slice(0, COLUMNS_MAX);
  const where = time ? [whereOf(time)] : [];
  const totals = [`SELECT ${numbers.map(({ sql }) => sql).join(", ")}`, `FROM ${identifier(table.name)}`, ...where];
  const rows = [
    `SELECT ${shown.map(({ name }) => identifier(name)).join(", ")}`,
    `FROM ${identifier(table.name)}`,
    ...where,
    "LIMIT 1000",
  ];
  const withChart = spec && chart;
  return [
    `# A starter dashboard for the table ${table.name.replace(/\p{Cc}/gu, " ")}. Edit it, check the preview, then publish.`,
    "version: 2",
    `title: ${yaml(table.name)}`,
    "",
    ...(time
      ? ["params:", `  - { name: period, title: Period, type: date_range, column_hint: ${yaml(time.name)} }`, ""]
      : []),
    "queries:",
    "  totals:",
    ...block(totals),
    ...(withChart ? ["  chart:", ...block(chart.sql)] : []),
    "  latest:",
    ...block(rows),
    "",
    "panels:",
    ...numbers.map(({ panel }) => panel),
    ...(withChart ? chartPanel(spec, chart) : []),
    "  - { id: latest, type: table, title: Sample rows, query: latest, width: 12, height: 400 }",
    "",
  ].join("\n");
}

const whereOf = (time: Column): string =>
  `WHERE $period_start IS NULL OR CAST(${identifier(time.name)} AS DATE) BETWEEN $period_start AND $period_end`;

/** @throws ApiFailure */
export async function starter(slug: string, table: Table): Promise<string> {
  const found = await look(slug, table);
  const plain = chartOf(table.name, found, []);
  const answer = plain && (await asked(slug, plain.sql.join("\n")));
  const spec = answer && guessChart(answer.columns, answer.rows as Row[]);
  const chart = chartOf(table.name, found, found.time ? [whereOf(found.time)] : []);
  return starterText(table, found, spec, chart);
}
