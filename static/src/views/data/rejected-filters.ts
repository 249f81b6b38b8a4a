/** Which rejected rows of a table are shown and downloaded. */
import { printFilter, type Filter } from "../../format/filter";
import type { Chosen } from "./statement";
import type { Address } from "./url-state";

/** The system table of rejected rows. */
export const REJECTED = "_rejected_rows";

/** The rejected rows that the URL selects. */
export function rejectedFilters(
  table: string,
  { source, reason, column }: Pick<Address, "source" | "reason" | "column">,
): Chosen {
  const is = (name: string, value: string): Filter => ({ column: name, operator: "eq", value });
  const filters = [is("table", table)];
  if (source) filters.push(is("source", source));
  if (reason) filters.push(is("reason", reason));
  if (column) filters.push(is("column", column));
  const sort = ["source", "line"].map((name) => ({ column: name, descending: false }));
  return { table: REJECTED, columns: [], filters, sort };
}

export const rejectedTexts = (...of: Parameters<typeof rejectedFilters>): string[] =>
  rejectedFilters(...of).filters.map(printFilter);
