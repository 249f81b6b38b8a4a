/** Columns of a result as fields show them: chosen, titled and formatted. */
import type { Cell, ResultColumn, Row } from "../../api/types";
import { areDays, EMPTY, familyOf, written } from "../../format/values";
import type { GridColumn } from "./types";
import { shown } from "./value";

/** A column by name, or with display options. */
interface Field {
  field: string;
  title?: string;
  format?: string;
}

/** Rows that tell whether times are days. */
const SAMPLE_ROWS = 200;

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
      const family = familyOf(type);
      if (family === "number") return named;
      if (family === "other")
        return { ...named, format: (value: Cell) => (value === null ? EMPTY : shown(value, type).text) };
      const format = areDays(rows.slice(0, SAMPLE_ROWS).map((row) => row[at])) ? "date" : undefined;
      return { ...named, format: (value: Cell) => written(value, format, type) || EMPTY };
    }),
    rows: rows.map((row) => found.map(({ at }) => row[at] ?? null)),
  };
}
