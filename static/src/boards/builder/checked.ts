/** Checks choices that come from outside: from a URL, from YAML. */
import { CHOICES, type Filter } from "../../format/filter";
import {
  AGGREGATES,
  type ChartChoice,
  type Dimension,
  FORMATS,
  GRAINS,
  KINDS,
  type ParamUse,
  type Source,
} from "./choice";

type Raw = Record<string, unknown>;
/** Whether it is an object of unknown members. */
export const isRaw = (value: unknown): value is Raw =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const isKey = <T extends object>(value: unknown, known: T): value is keyof T & string =>
  isText(value) && Object.hasOwn(known, value);
const PARAM_KINDS = { date_range: 1, select: 1, number: 1, text: 1 };
const TOP_MAX = 1_000;

function dimension(value: unknown): Dimension | undefined {
  if (!isRaw(value)) return undefined;
  const { column, type, grain, bin, top } = value;
  if (!isText(column) || !isText(type)) return undefined;
  return {
    column,
    type,
    ...(isKey(grain, GRAINS) ? { grain } : {}),
    ...(typeof bin === "number" && Number.isFinite(bin) && bin > 0 ? { bin } : {}),
    ...(typeof top === "number" && Number.isInteger(top) && top > 0 && top <= TOP_MAX ? { top } : {}),
  };
}

function source(value: unknown): Source | undefined {
  if (!isRaw(value)) return undefined;
  if (isText(value.table)) return { table: value.table };
  return isText(value.sql) ? { sql: value.sql } : undefined;
}

function list<T>(value: unknown, read: (one: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.map(read).filter((one) => one !== undefined);
  return found.length > 0 ? found : undefined;
}

function filter(value: unknown): (Filter & { type: string }) | undefined {
  if (!isRaw(value)) return undefined;
  const { column, operator, value: text, type } = value;
  if (!isText(column) || !isText(text) || !isText(type) || !isKey(operator, CHOICES) || operator === "between")
    return undefined;
  return { column, operator, value: text, type };
}

function param(value: unknown): ParamUse | undefined {
  if (!isRaw(value)) return undefined;
  const { param: name, kind, column, empty } = value;
  if (!isText(name) || !/^[a-z][a-z0-9_]*$/.test(name) || !isText(column) || !isKey(kind, PARAM_KINDS))
    return undefined;
  return { param: name, kind, column, ...(empty === true ? { empty } : {}) };
}

/** A choice from plain data; undefined if it isn't one. */
export function choiceOf(value: unknown): ChartChoice | undefined {
  if (!isRaw(value)) return undefined;
  const { kind, aggregate, measure, measureType, measureUnit, others, sort, format } = value;
  const own = source(value.source);
  if (!own || !isKey(kind, KINDS) || !isKey(aggregate, AGGREGATES)) return undefined;
  const optional: Partial<ChartChoice> = {};
  if (isText(measure)) optional.measure = measure;
  if (isKey(measureUnit, FORMATS)) optional.measureUnit = measureUnit;
  if (isText(measureType)) optional.measureType = measureType;
  const more = list(value.more, (one) => (isText(one) ? one : undefined));
  if (more) optional.more = more;
  const [by, split] = [dimension(value.by), dimension(value.split)];
  if (by) optional.by = by;
  if (split) optional.split = split;
  if (others === false) optional.others = false;
  if (value.totals === true) optional.totals = true;
  if (sort === "value" || sort === "ascending" || sort === "name") optional.sort = sort;
  if (isKey(format, FORMATS)) optional.format = format;
  const [filters, params] = [list(value.filters, filter), list(value.params, param)];
  if (filters) optional.filters = filters;
  if (params) optional.params = params;
  return { source: own, kind, aggregate, ...optional };
}
