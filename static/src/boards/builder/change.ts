/** Changes of a chart that keep it whole: each kind gets the columns it needs. */
import type { ChartSpec } from "../../components/chart";
import { familyOf, isNumeric } from "../../format/values";
import { type Aggregate, type ChartChoice, type Dimension, type Kind } from "./choice";
import {
  aggregateOf,
  categoriesOf,
  dimensionOf,
  firstChoice,
  kindFor,
  measured,
  measuresOf,
  SERIES,
  sortOf,
  timesOf,
  TOP,
} from "./pick";
import type { ColumnProfile, Profile } from "./profile";

export interface KnownColumn {
  name: string;
  type: string;
}

const profiledAs = (column: KnownColumn, profile: Profile): ColumnProfile =>
  profile.columns.find(({ name }) => name === column.name) ?? {
    ...column,
    distinct: 0,
    min: undefined,
    max: undefined,
    hours: false,
  };

const byName = (name: string, columns: readonly KnownColumn[]): KnownColumn =>
  columns.find((one) => one.name === name) ?? { name, type: "string" };

const raw = ({ name, type }: KnownColumn): Dimension => ({ column: name, type });

/** The choice without some of its members. */
export const without = (choice: ChartChoice, ...names: (keyof ChartChoice)[]): ChartChoice => {
  const rest = { ...choice };
  for (const name of names) delete rest[name];
  return rest;
};

/** What the builder knows about the source. */
export interface Known {
  columns: readonly KnownColumn[];
  profile: Profile;
}

export function withBy(choice: ChartChoice, name: string, { columns, profile }: Known): ChartChoice {
  const column = byName(name, columns);
  const plain = choice.aggregate === "none" || choice.kind === "scatter";
  const by = plain ? raw(column) : dimensionOf(profiledAs(column, profile), TOP);
  const next: ChartChoice = { ...choice, by, sort: sortOf(by) };
  const isSame = choice.split?.column === name;
  const lines = choice.kind === "line" || choice.kind === "area";
  const kind = lines && !plain && by.grain === undefined && by.bin === undefined ? "bar" : next.kind;
  const done = { ...next, kind: choice.kind === "bar" && by.grain !== undefined && !plain ? ("line" as const) : kind };
  return isSame ? without(done, "split") : plain && choice.kind !== "scatter" ? without(done, "sort") : done;
}

export function withSplit(choice: ChartChoice, name: string, { columns, profile }: Known): ChartChoice {
  if (name === "") return without(choice, "split");
  const column = byName(name, columns);
  const plain = choice.aggregate === "none" || choice.kind === "scatter";
  return { ...without(choice, "more"), split: plain ? raw(column) : dimensionOf(profiledAs(column, profile), SERIES) };
}

export function withMeasure(choice: ChartChoice, name: string, { columns, profile }: Known): ChartChoice {
  return { ...without(choice, "more", "measureUnit"), ...measured(profiledAs(byName(name, columns), profile)) };
}

export function withAggregate(choice: ChartChoice, aggregate: Aggregate, known: Known): ChartChoice {
  const { columns, profile } = known;
  const next = without({ ...choice, aggregate }, "more");
  if (aggregate === "count") return grouped(without(next, "measure", "measureType", "measureUnit"), known);
  const fits = (name: string | undefined) =>
    name !== undefined && (aggregate === "distinct" || isNumeric(byName(name, columns).type));
  const [best] = measuresOf(profile);
  const first = best ?? columns.find(({ type }) => isNumeric(type)) ?? columns[0];
  const named = fits(choice.measure) ? next : withMeasure(next, first?.name ?? "", known);
  if (aggregate !== "none") return grouped(named, known);
  const plainBy = named.by && raw(byName(named.by.column, columns));
  const plainSplit = named.split && raw(byName(named.split.column, columns));
  return {
    ...without(named, "sort"),
    ...(plainBy ? { by: plainBy } : {}),
    ...(plainSplit ? { split: plainSplit } : {}),
  };
}

/** Dimensions of an aggregation; those of rows as they are have no unit. */
function grouped(choice: ChartChoice, { columns, profile }: Known): ChartChoice {
  const { by, split } = choice;
  const again = (one: Dimension, top: number) =>
    (one.grain ?? one.bin ?? one.top) ? one : dimensionOf(profiledAs(byName(one.column, columns), profile), top);
  const next = by && again(by, TOP);
  return {
    ...choice,
    ...(next ? { by: next, sort: choice.sort ?? sortOf(next) } : {}),
    ...(split ? { split: again(split, SERIES) } : {}),
  };
}

export function withKind(choice: ChartChoice, kind: Kind, known: Known): ChartChoice {
  const { columns, profile } = known;
  const next: ChartChoice = { ...choice, kind };
  const numbers = columns.filter(({ type }) => isNumeric(type));
  if (kind === "scatter") {
    const [first] = measuresOf(profile);
    const y = numbers.find(({ name }) => name === choice.measure) ?? first ?? numbers[0];
    const along = byName(choice.by?.column ?? "", columns);
    const isPlace = familyOf(along.type) !== "other" && along.name !== y?.name;
    const x = isPlace && choice.by ? along : (numbers.find(({ name }) => name !== y?.name) ?? columns[0]);
    const split = choice.split ? { split: raw(byName(choice.split.column, columns)) } : {};
    const bare = without(next, "sort", "more", "split");
    return { ...(y ? withMeasure(bare, y.name, known) : bare), ...(x ? { by: raw(x) } : {}), ...split };
  }
  const left = choice.kind === "scatter" && choice.aggregate !== "none" ? grouped(next, known) : next;
  if (kind === "number" && left.aggregate === "none") return withAggregate(left, "sum", known);
  if (kind === "number" || kind === "table") return left;
  const along = left.by ? left : withBy(left, defaultBy(known)?.name ?? "", known);
  if (kind === "pie") return without({ ...along, kind }, "split", "more");
  const totals = kind === "pivot" && choice.kind !== "pivot" ? { totals: true } : {};
  if ((kind !== "heatmap" && kind !== "pivot") || along.split) return { ...along, ...totals, kind };
  const other = [...categoriesOf(profile), ...timesOf(profile), ...columns].find(
    ({ name }) => name !== along.by?.column,
  );
  const done = { ...withSplit(along, other?.name ?? "", known), ...totals, kind };
  return kind === "pivot" ? without(done, "more") : done;
}

const defaultBy = ({ columns, profile }: Known): KnownColumn | undefined =>
  timesOf(profile)[0] ?? categoriesOf(profile)[0] ?? columns[0];

/** The rows of a result as the guess draws them. */
export function choiceOfSpec(sql: string, spec: ChartSpec, columns: readonly KnownColumn[]): ChartChoice {
  const [first, ...rest] = spec.y.map(({ field }) => field);
  const heat = spec.type === "heatmap";
  const measure = byName((heat ? spec.value?.field : first) ?? "", columns);
  const split = heat ? first : spec.series;
  return {
    source: { sql },
    kind: spec.type === "bar" && spec.stacked ? "stacked" : spec.type,
    aggregate: "none",
    measure: measure.name,
    measureType: measure.type,
    by: raw(byName(spec.x.field, columns)),
    ...(split === undefined ? {} : { split: raw(byName(split, columns)) }),
    ...(!heat && rest.length > 0 ? { more: rest } : {}),
  };
}

/** A first chart of a result that no guess fits. */
export const firstOfResult = (sql: string, profile: Profile): ChartChoice => ({
  ...firstChoice("", profile),
  source: { sql },
});

export { aggregateOf, kindFor };
