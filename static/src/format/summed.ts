import { familyOf } from "./values";

/** Names of additive measures. */
const SUMMED = /(amount|price|revenue|total|sales|cost|fare|qty|quantity|units|bytes|volume|value)/i;

/** The most useful measure of a table to sum, by name. */
export const summedColumn = <C extends { name: string; type: string }>(columns: readonly C[]): C | undefined =>
  columns.find(({ name, type }) => familyOf(type) === "number" && SUMMED.test(name));
