/** Finds files whose first rows a table has already: copies under another name, or in another format. */
import { ran } from "../api/sql";
import { identifier, literal } from "../format/sql";

/** The first rows of a file as a run would write them. */
export interface FirstRows {
  file: string;
  columns: readonly { name: string }[];
  rows: readonly unknown[][];
}

/** Rows that are looked up; fewer than the least, or less than two columns, may be equal by chance. */
const [ROWS_MIN, ROWS_MAX] = [2, 5];
const COLUMNS_MIN = 2;

const textOf = (cell: unknown): string => (typeof cell === "string" ? cell : JSON.stringify(cell));

/** Whether the table has each of the rows, as SQL; undefined if that says nothing. `known`: columns of the table. */
export function copySql(table: string, known: ReadonlySet<string>, { columns, rows }: FirstRows): string | undefined {
  const compared = columns.flatMap(({ name }, at) => (known.has(name) ? [{ name: identifier(name), at }] : []));
  const told = rows.filter((row) => compared.filter(({ at }) => row[at] !== null).length >= COLUMNS_MIN);
  if (told.length < ROWS_MIN) return undefined;
  const same = (row: unknown[]) =>
    compared.map(({ name, at }) => (row[at] === null ? `${name} IS NULL` : `${name} = ${literal(textOf(row[at]))}`));
  const found = (row: unknown[]) => `EXISTS (FROM ${identifier(table)} WHERE ${same(row).join(" AND ")})`;
  return `SELECT ${told.slice(0, ROWS_MAX).map(found).join("\n  AND ")}`;
}

/** The files whose first rows a table has. A file that can't be compared isn't among them. */
export async function copiesIn(
  slug: string,
  table: { name: string; schema: readonly { name: string }[] },
  files: readonly FirstRows[],
  signal?: AbortSignal,
): Promise<string[]> {
  const known = new Set(table.schema.map(({ name }) => name));
  const isCopy = async (file: FirstRows) => {
    const sql = copySql(table.name, known, file);
    if (sql === undefined) return false;
    try {
      return (await ran(slug, sql, signal)).rows[0]?.[0] === true;
    } catch {
      return false;
    }
  };
  const copies = await Promise.all(files.map(isCopy));
  return files.filter((_, at) => copies[at]).map(({ file }) => file);
}
