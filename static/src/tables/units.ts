/** Units of a table's columns: what the signs in their sources said. */
import { useQuery } from "@tanstack/preact-query";
import { useMemo } from "preact/hooks";
import type { StoredConfig } from "../api/config";
import { configQuery } from "../api/queries";
import type { Cell, ResultColumn } from "../api/types";
import { isNumeric, written } from "../format/values";

type Raw = Record<string, unknown>;
const raws = (value: unknown): Raw[] =>
  Array.isArray(value) ? value.filter((one): one is Raw => typeof one === "object" && one !== null) : [];

/** Signs of the currencies that have a number format. */
const CURRENCIES: Record<string, string> = {
  ...{ $: "usd", USD: "usd", US$: "usd", "€": "eur", EUR: "eur" },
  ...{ "£": "gbp", GBP: "gbp" },
};

/** The number format of a `number_format`; undefined if there is none for its signs. */
export function unitOf(format: unknown): string | undefined {
  const { percent, currency } = (format ?? {}) as { percent?: unknown; currency?: unknown };
  if (percent === true) return "percent";
  const units = new Set(Array.isArray(currency) ? currency.map((sign) => CURRENCIES[String(sign)]) : []);
  return units.size === 1 ? [...units][0] : undefined;
}

/** Number formats of a table's columns, by name. Of a column that files write differently, those that agree. */
export function unitsOf({ mappings }: StoredConfig, table: string): Map<string, string> {
  const found = new Map<string, string>();
  const mapping = raws(mappings).find((one) => one.table === table) ?? {};
  const variants = raws(mapping.variants).flatMap(({ columns }) => raws(columns));
  for (const { name, number_format: own } of raws(mapping.columns)) {
    const others = variants.filter((one) => one.name === name).map((one) => one.number_format);
    const units = new Set([own, ...others].map(unitOf).filter((unit) => unit !== undefined));
    const [unit] = units;
    if (typeof name === "string" && unit !== undefined && units.size === 1) found.set(name, unit);
  }
  return found;
}

// Of a text that isn't JSON there are none.
const parsed = ({ text }: { text: string }) => JSON.parse(text) as StoredConfig;

/** Number formats of a table's columns by the stored config, by name; none while that is unknown. */
export function useUnits(slug: string, table: string): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...configQuery(slug), select: parsed });
  return useMemo(() => unitsOf(data ?? {}, table), [data, table]);
}

const percentCell = (value: Cell): string => (value === null ? "null" : written(value, "percentage"));

/** Columns of a grid that shows fractions as percentages; copies and downloads have the fractions. */
export const withUnits = <C extends ResultColumn>(columns: readonly C[], units: ReadonlyMap<string, string>) =>
  columns.map((column): C & { format?: (value: Cell) => string } =>
    units.get(column.name) === "percent" && isNumeric(column.type) ? { ...column, format: percentCell } : column,
  );
