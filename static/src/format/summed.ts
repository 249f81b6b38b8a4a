import { familyOf } from "./values";

/** Names of numbers that make sense as a sum. */
const SUMMED = /(amount|price|revenue|total|sales|cost|fare|qty|quantity|units|bytes|volume|value)/i;

/** The column whose sum says most of a table, by its name. */
export const summedColumn = <C extends { name: string; type: string }>(columns: readonly C[]): C | undefined =>
  columns.find(({ name, type }) => familyOf(type) === "number" && SUMMED.test(name));
