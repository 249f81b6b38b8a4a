import type { Cell, Row } from "../../api/types";
import type { GridColumn } from "../../components/grid";
import { familyOf, numeric, plain } from "../../format/values";

export type SortKeys = { column: string; descending: boolean }[];

const naturalOrder = new Intl.Collator(undefined, { numeric: true });

/** Sorts numbers by value and strings by locale; nulls last. */
export function sortedRows(rows: Row[], columns: GridColumn[], sort: SortKeys): Row[] {
  const keys = sort
    .map(({ column, descending }) => ({ at: columns.findIndex(({ name }) => name === column), descending }))
    .filter(({ at }) => at >= 0);
  if (keys.length === 0) return rows;
  return [...rows].sort((a, b) => {
    for (const { at, descending } of keys) {
      const order = compared(a[at], b[at], familyOf(columns[at]?.type ?? "") === "number");
      const isNull = (a[at] ?? null) === null || (b[at] ?? null) === null;
      if (order !== 0) return descending && !isNull ? -order : order;
    }
    return 0;
  });
}

function compared(a: Cell | undefined, b: Cell | undefined, byNumber: boolean): number {
  const [left, right] = [a ?? null, b ?? null];
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  const [x, y] = byNumber ? [numeric(left), numeric(right)] : [null, null];
  return x !== null && y !== null ? x - y : naturalOrder.compare(plain(left), plain(right));
}
