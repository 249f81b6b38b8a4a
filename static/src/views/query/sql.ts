import { identifier } from "../../format/sql";

/** The query that shows what a table is like. */
export const firstRows = (table: string): string => `SELECT *\nFROM ${identifier(table)}\nLIMIT 100`;
