import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import type { Row } from "../../api/types";
import { persisted } from "../../browser/persisted";
import { isNaming } from "../../format/naming";
import type { GridColumn, RowSource } from "./types";
import { clampWidth, isWidths, widthsOf, type Widths } from "./widths";

const SAMPLED_ROWS = 60;
const NONE: Widths = {};

function firstRows(rows: RowSource): Row[] {
  const found: Row[] = [];
  for (let index = 0; index < Math.min(rows.total, SAMPLED_ROWS); index += 1) {
    const row = rows.get(index);
    if (!row) break;
    found.push(row);
  }
  return found;
}

/** Decides for each column whether its numbers are identifiers. */
const withContentWidths = (columns: GridColumn[], rows: Row[]): GridColumn[] =>
  columns.map((column, at) => ({
    ...column,
    naming:
      column.naming ??
      isNaming(
        column.name,
        column.type,
        rows.map((row) => row[at]),
      ),
  }));

/** Columns and their widths: stored under `name`, else by the first rows; later rows change nothing. */
export function useWidths(given: GridColumn[], rows: RowSource, name: string | undefined, filtered: boolean) {
  const store = useMemo(() => (name ? persisted<Widths>(`grid.${name}`, NONE, isWidths) : undefined), [name]);
  const [own, setOwn] = useState<{ of: typeof store; widths: Widths }>({ of: store, widths: store?.peek() ?? NONE });
  const current = own.of === store ? own.widths : (store?.peek() ?? NONE);
  const shape = given.map(({ name: column, type }) => `${column}\n${type}`).join("\n\n");
  const first = useRef<{ shape: string; rows: Row[] }>();
  if (first.current?.shape !== shape || first.current.rows.length === 0)
    first.current = { shape, rows: firstRows(rows) };
  const looked = first.current.rows;
  const columns = useMemo(() => withContentWidths(given, looked), [given, looked]);
  const widths = useMemo(
    () => widthsOf(columns, looked, current, filtered),
    // Columns with equal names and types are equal.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [shape, looked, current, filtered],
  );
  const resize = useCallback(
    (column: number, width: number | undefined) => {
      const key = columns[column]?.name;
      if (key === undefined) return;
      const entries = Object.entries(current).filter(([other]) => other !== key);
      if (width !== undefined) entries.push([key, clampWidth(width)]);
      const next = Object.fromEntries(entries);
      setOwn({ of: store, widths: next });
      if (store) store.value = next;
    },
    [columns, current, store],
  );
  return { columns, widths, resize };
}
