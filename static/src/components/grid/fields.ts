/** Columns of a result as fields show them: chosen, titled and formatted. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { familyOf, instant, written } from "../../format/values";
import type { GridColumn } from "./types";

/** A column by name, or with display options. */
interface Field {
  field: string;
  title?: string;
  format?: string;
}

const DAY_MS = 86_400_000;
/** Rows that tell whether times are days. */
const SAMPLE_ROWS = 200;

/** Whether all values of a timestamp are midnights. */
function areDays(at: number, rows: Row[]): boolean {
  const times = rows.slice(0, SAMPLE_ROWS).map((row) => instant(row[at]));
  return times.some((ms) => ms !== null) && times.every((ms) => ms === null || ms % DAY_MS === 0);
}

/** The grid's columns and rows; skips fields that the result lacks. `fields`: default all columns. */
export function fieldGrid(
  fields: readonly Field[],
  columns: readonly ResultColumn[],
  rows: Row[],
): { columns: GridColumn[]; rows: Row[] } {
  const wanted: readonly Field[] = fields.length > 0 ? fields : columns.map(({ name }) => ({ field: name }));
  const found = wanted
    .map((field) => ({ field, at: columns.findIndex(({ name }) => name === field.field) }))
    .filter(({ at }) => at >= 0);
  return {
    columns: found.map(({ field, at }) => {
      const type = columns[at]?.type ?? "string";
      const named = { name: field.title || field.field, type };
      if (field.format) return { ...named, format: (value: Cell) => written(value, field.format, type) };
      if (familyOf(type) !== "time" || !areDays(at, rows)) return named;
      return { ...named, format: (value: Cell) => written(value, "date", type) };
    }),
    rows: rows.map((row) => found.map(({ at }) => row[at] ?? null)),
  };
}
