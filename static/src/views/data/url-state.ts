import { useCallback, useMemo } from "preact/hooks";
import { useSearchParams } from "wouter-preact";
import type { Column } from "../../api/types";
import type { SortKey } from "../../components/grid";
import { parseFilter, printFilter, type Filter } from "../../format/filter";
import { parseSort, printSort } from "./statement";

export const TABS = ["rows", "schema", "partitions", "sources", "rejected", "versions"] as const;
export type Tab = (typeof TABS)[number];

const isTab = (name: string | null): name is Tab => TABS.some((tab) => tab === name);

/** State of the view in the URL. */
export interface Address {
  tab: Tab;
  /** As the API takes them, even with unknown columns, which the service reports. */
  sortText: string;
  filterTexts: string[];
  sort: SortKey[];
  filters: Filter[];
  /** Index of the open row. */
  row: number | undefined;
  source: string | undefined;
  /** Filter of rejected rows. */
  reason: string | undefined;
  /** Filter of rejected rows: the column that was rejected. */
  column: string | undefined;
  page: number;
  chart: boolean;
  /** The chart as chosen; `1`: the suggested one. */
  chartText: string | undefined;
  /** A version of the table; undefined: the current one. */
  asOf: string | undefined;
  set: (change: Change, how?: { replace?: boolean }) => void;
}

export interface Change {
  tab?: Tab;
  sort?: SortKey[];
  filters?: Filter[];
  row?: number | undefined;
  source?: string | undefined;
  reason?: string | undefined;
  column?: string | undefined;
  page?: number;
  chart?: string | undefined;
  asOf?: string | undefined;
}

function number(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function put(params: URLSearchParams, name: string, value: string | undefined): void {
  if (value === undefined || value === "") params.delete(name);
  else params.set(name, value);
}

function changed(before: URLSearchParams, change: Change): URLSearchParams {
  const params = new URLSearchParams(before);
  if (change.tab) {
    put(params, "tab", change.tab === "rows" ? undefined : change.tab);
    for (const name of ["page", "row", "source", "reason", "column"]) params.delete(name);
  }
  if (change.sort) put(params, "sort", printSort(change.sort));
  if (change.filters) {
    params.delete("filter");
    for (const filter of change.filters) params.append("filter", printFilter(filter));
  }
  if (change.sort || change.filters) params.delete("row");
  if ("row" in change) put(params, "row", change.row === undefined ? undefined : String(change.row + 1));
  if ("source" in change) put(params, "source", change.source);
  if ("reason" in change) put(params, "reason", change.reason);
  if ("column" in change) put(params, "column", change.column);
  if ("asOf" in change) {
    put(params, "as_of", change.asOf);
    for (const name of ["page", "row"]) params.delete(name);
  }
  if (change.page !== undefined) put(params, "page", change.page > 0 ? String(change.page + 1) : undefined);
  if ("chart" in change) put(params, "chart", change.chart);
  return params;
}

export function useAddress(columns: readonly Column[]): Address {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (change: Change, how: { replace?: boolean } = {}) => setParams((before) => changed(before, change), how),
    [setParams],
  );
  return useMemo(() => {
    const names = columns.map(({ name }) => name);
    const tab = params.get("tab");
    const filterTexts = params.getAll("filter");
    const sortText = params.get("sort") ?? "";
    const row = number(params.get("row"));
    return {
      tab: isTab(tab) ? tab : "rows",
      sortText,
      filterTexts,
      sort: parseSort(sortText, names) ?? [],
      filters: filterTexts.flatMap((text) => parseFilter(text, names) ?? []),
      row: row !== undefined && row > 0 ? row - 1 : undefined,
      source: params.get("source") ?? undefined,
      reason: params.get("reason") ?? undefined,
      column: params.get("column") ?? undefined,
      page: Math.max(0, (number(params.get("page")) ?? 1) - 1),
      chart: params.has("chart"),
      chartText: params.get("chart") ?? undefined,
      asOf: params.get("as_of") ?? undefined,
      set,
    };
  }, [params, columns, set]);
}
