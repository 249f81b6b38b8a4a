/** Generates a starter dashboard for a table: key figures, charts over time and by category, sample rows. */
import type { Table } from "../api/types";
import { emptyText } from "./add";
import { type ChartChoice, titleOf } from "./builder/choice";
import { nameFrom, panelOf } from "./builder/panel";
import {
  aggregateOf,
  categoriesOf,
  dimensionOf,
  firstChoice,
  measured,
  measuresOf,
  timesOf,
  TOP,
} from "./builder/pick";
import { type Profile, profileTable } from "./builder/profile";
import { statementOf } from "./builder/statement";
import { addPanel, addParam, edited } from "./yaml";

const COLUMNS_MAX = 12;
const CATEGORY_CHARTS_MAX = 2;
const PERIOD = "period";

const usable = ({ name }: { name: string }): boolean => !/\p{Cc}/u.test(name);

interface Part {
  id: string;
  choice: ChartChoice;
  width: number;
  height?: number;
}

/** Key figures: rows, and the total and average of the measure, or the values of a category. */
function figures(table: string, profile: Profile): Omit<Part, "width">[] {
  const [measure] = measuresOf(profile);
  const [category] = categoriesOf(profile);
  const base = { source: { table }, kind: "number" } as const;
  const found: Omit<Part, "width">[] = [{ id: "rows", choice: { ...base, aggregate: "count" } }];
  if (measure) {
    const of = measured(measure);
    if (aggregateOf(measure) === "sum") found.push({ id: "total", choice: { ...base, aggregate: "sum", ...of } });
    found.push({ id: "average", choice: { ...base, aggregate: "avg", ...of } });
  } else if (category) {
    const of = measured(category);
    found.push({ id: "kinds", choice: { ...base, aggregate: "distinct", ...of } });
  }
  return found;
}

function parts(table: Table, profile: Profile): Part[] {
  const numbers = figures(table.name, profile);
  const found: Part[] = numbers.map((one) => ({ ...one, width: 12 / numbers.length }));
  const first = firstChoice(table.name, profile);
  if (first.by) found.push({ id: "chart", choice: first, width: 12, height: 320 });
  const categories = categoriesOf(profile).filter(({ name }) => name !== first.by?.column);
  const shown = categories.slice(0, CATEGORY_CHARTS_MAX);
  for (const category of shown) {
    const choice: ChartChoice = { ...first, kind: "bar", by: dimensionOf(category, TOP), sort: "value" };
    found.push({
      id: nameFrom(
        `by ${category.name}`,
        found.map(({ id }) => id),
      ),
      choice,
      width: 12 / shown.length,
      height: 320,
    });
  }
  const columns = table.schema
    .filter(usable)
    .slice(0, COLUMNS_MAX)
    .map(({ name }) => name);
  const sample: ChartChoice = { source: { table: table.name }, kind: "table", aggregate: "none", more: columns };
  return [...found, { id: "latest", choice: sample, width: 12, height: 400 }];
}

/** Columns of the sample rows, with the formats of their units. */
const formatted = (names: string[], profile: Profile) =>
  names.map((field) => {
    const format = profile.columns.find(({ name }) => name === field)?.unit;
    return format === undefined ? field : { field, format: format === "percent" ? "percent1" : format };
  });

/** The YAML document. */
export function starterText(table: Table, profile: Profile): string {
  const [time] = timesOf(profile);
  const head = `# A starter dashboard for the table ${table.name.replace(/\p{Cc}/gu, " ")}. Edit it, then publish.\n`;
  const period = time && { param: PERIOD, kind: "date_range" as const, column: time.name };
  return edited(head + emptyText(table.name), (document) => {
    if (time) addParam(document, { name: PERIOD, title: "Period", type: "date_range", column_hint: time.name });
    for (const { id, choice: own, width, height } of parts(table, profile)) {
      const choice: ChartChoice = period ? { ...own, params: [period] } : own;
      const max = profile.columns.find(({ name }) => name === choice.measure)?.max;
      const fields = {
        id,
        title: titleOf(choice),
        query: id,
        width,
        ...(height === undefined ? {} : { height }),
      };
      const panel = panelOf(choice, fields, max);
      if (choice.more) panel.columns = formatted(choice.more, profile);
      addPanel(document, panel, { name: id, sql: statementOf(choice), choice });
    }
  });
}

/** @throws ApiFailure */
export const starter = async (slug: string, table: Table): Promise<string> =>
  starterText(table, await profileTable(slug, table));
