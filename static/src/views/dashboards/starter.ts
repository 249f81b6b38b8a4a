/** A first dashboard for a table: how many rows, a chart that suits it, its rows. Written as a person would. */
import { api, ask } from "../../api/client";
import type { Column, QueryAnswer, Row, Table } from "../../api/types";
import { guessChart, type ChartSpec } from "../../components/chart";
import { identifier } from "../../format/sql";
import { familyOf, numeric } from "../../format/values";

const COLUMNS_MAX = 12;
const BARS_MAX = 20;
/** Beyond this many days a chart by month says more. */
const DAYS_MAX = 400;
const WORDS_SEEN = 12;

const yaml = (text: string): string =>
  /^[A-Za-z][\w -]*\w$/.test(text) && !/^(?:true|false|null|yes|no|on|off)$/i.test(text) ? text : JSON.stringify(text);

export interface Found {
  /** A column of days or times. */
  time: Column | undefined;
  byMonth: boolean;
  /** A column of few words. */
  word: Column | undefined;
  /** A column of numbers that measures something. */
  measure: Column | undefined;
}

const asked = (slug: string, sql: string): Promise<QueryAnswer> =>
  ask(api.POST("/api/p/{pipeline}/query", { params: { path: { pipeline: slug } }, body: { sql } }));

const usable = ({ name }: Column): boolean => !/\p{Cc}/u.test(name);
const isDay = ({ type }: Column): boolean => /^(?:date|timestamp)/i.test(type);
const isMeasure = ({ name, type }: Column): boolean =>
  familyOf(type) === "number" && !/(?:^|_)(?:id|key|code|zip|year|month|day|hour|number|no)$/i.test(name);

/** What of a table's columns a chart can be made of. */
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
  return { time: days > 0 ? time : undefined, byMonth: days > DAYS_MAX, word, measure: columns.find(isMeasure) };
}

interface Chart {
  sql: string[];
  title: string;
}

/** The query of the chart, without what restricts it to a period. */
function chartOf(table: string, { time, byMonth, word }: Found, where: string[]): Chart | undefined {
  const from = identifier(table);
  if (time) {
    const unit = byMonth ? "month" : "day";
    return {
      title: `Rows by ${unit}`,
      sql: [
        `SELECT date_trunc('${unit}', ${identifier(time.name)}) AS "${unit}", count(*) AS "rows"`,
        `FROM ${from}`,
        ...where,
        "GROUP BY ALL",
        "ORDER BY 1",
      ],
    };
  }
  if (!word) return undefined;
  return {
    title: `Rows by ${word.name}`,
    sql: [
      `SELECT ${identifier(word.name)}, count(*) AS "rows"`,
      `FROM ${from}`,
      "GROUP BY ALL",
      `ORDER BY 2 DESC LIMIT ${BARS_MAX}`,
    ],
  };
}

const block = (lines: string[]): string[] => ["    sql: |", ...lines.map((line) => `      ${line}`)];

function chartPanel(spec: ChartSpec, title: string): string[] {
  return [
    `  - id: chart`,
    `    type: ${spec.type === "line" || spec.type === "bar" ? spec.type : "bar"}`,
    `    title: ${yaml(title)}`,
    `    query: chart`,
    `    x: ${yaml(spec.x.field)}`,
    `    y: [{ field: rows, title: Rows, format: integer }]`,
    ...(spec.horizontal ? ["    horizontal: true"] : []),
    `    width: 9`,
    `    height: 320`,
  ];
}

/** The text, from what was found. */
export function starterText(table: Table, found: Found, spec: ChartSpec | undefined, chart: Chart | undefined): string {
  const { time, measure } = found;
  const shown = table.schema.filter(usable).slice(0, COLUMNS_MAX);
  const where = time ? [whereOf(time)] : [];
  const totals = [
    `SELECT count(*) AS "rows"${measure ? `, avg(${identifier(measure.name)}) AS average` : ""}`,
    `FROM ${identifier(table.name)}`,
    ...where,
  ];
  const rows = [
    `SELECT ${shown.map(({ name }) => identifier(name)).join(", ")}`,
    `FROM ${identifier(table.name)}`,
    ...where,
    "LIMIT 1000",
  ];
  const withChart = spec && chart;
  return [
    `# A first dashboard for the table ${table.name.replace(/\p{Cc}/gu, " ")}. Change it, look at it beside the text, publish it.`,
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
    "  - { id: rows, type: kpi, title: Rows, query: totals, value: { field: rows, format: integer }, width: 3 }",
    ...(measure
      ? [
          `  - { id: average, type: kpi, title: ${yaml(`Average ${measure.name}`)}, query: totals, value: { field: average, format: number }, width: 3 }`,
        ]
      : []),
    ...(withChart ? chartPanel(spec, chart.title).map((line) => line.replace("width: 9", "width: 12")) : []),
    "  - { id: latest, type: table, title: Some rows, query: latest, width: 12, height: 400 }",
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
