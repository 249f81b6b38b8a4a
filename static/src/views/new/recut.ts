/** Columns after a change of the CSV settings. */
import type { Cell, Previewed } from "../../api/types";
import { previewOf } from "../../tables/preview";
import { itemOf, type Dialect } from "../../tables/dialect";
import type { DraftColumn } from "./draft";
import { stagedGlob, type Staged } from "../../uploads/staging";

async function look(staged: Staged, csv: Dialect, columns: unknown[]): Promise<Previewed> {
  const mapping = { table: "sample", files: [stagedGlob(staged)], csv, columns, missing_columns: "null" };
  const config = { version: 1, title: "", mappings: [mapping] };
  return await previewOf(staged.slug, { config, key: staged.key, limit: 200 });
}

async function headerOf(staged: Staged, csv: Dialect): Promise<string[]> {
  const headed = { ...csv, header: true, ragged_rows: "pad" };
  const { header, problems, failure } = await look(staged, headed, [
    { name: "none", from: ["\u2400"], type: "string" },
  ]);
  if (!header) throw new Error(problems[0]?.message ?? failure?.message ?? "the header of the file can't be read");
  return header;
}

/** The headers of all files together: some files may lack columns. Without names, the longest. */
export function union(headers: readonly string[][], named: boolean): string[] {
  if (!named) return headers.reduce((longest, one) => (one.length > longest.length ? one : longest), []);
  const [first = [], ...others] = headers;
  const all = [...first];
  for (const header of others) {
    const known = new Set(all.map((cell) => cell.toLowerCase()));
    all.push(...header.filter((cell) => !known.has(cell.toLowerCase())));
  }
  return all;
}

/** Columns with other settings. */
interface Recut {
  columns: DraftColumn[];
  /** Whether some files lack some of them. */
  partial: boolean;
}

/**
 * Columns of the headers with other settings. @param own the user's changes, which stay @param proposed proposals for
 * other columns
 */
export async function recut(
  samples: readonly Staged[],
  csv: Dialect,
  own: DraftColumn[],
  proposed: DraftColumn[],
): Promise<Recut> {
  const files = samples.filter(({ piece }) => piece === undefined);
  const headers = await Promise.all(files.map((staged) => headerOf(staged, csv)));
  const named = itemOf(csv, "header") === true;
  const header = union(headers, named);
  const partial = headers.some(({ length }) => length < header.length);
  const names = unique(header.map((cell, at) => (named ? snake(cell) : "") || `column_${at + 1}`));
  const columns = header.map((cell, at): DraftColumn => {
    const from = named ? cell : at;
    const previous = bySource(own, from) ?? bySource(proposed, from);
    const fresh = { id: at, name: names[at] ?? `column_${at + 1}`, from, type: "string", formats: [] };
    return previous
      ? { ...previous, id: at }
      : { ...fresh, timezone: undefined, nullable: true, included: true, evidence: undefined };
  });
  const unknown = columns.filter(({ evidence, from }) => evidence === undefined && !bySource(own, from));
  return { columns: unknown.length > 0 ? await guessed(files, csv, columns, new Set(unknown)) : columns, partial };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const bySource = (columns: DraftColumn[], from: DraftColumn["from"]): DraftColumn | undefined =>
  columns.find((column) => same(column.from, from));

/** Columns changed by the user, now or `earlier`. */
export function changedByUser(columns: DraftColumn[], cut: DraftColumn[], earlier: DraftColumn[]): DraftColumn[] {
  const touched = columns.filter(
    (column) =>
      !same(
        column,
        cut.find(({ id }) => id === column.id),
      ),
  );
  return [...touched, ...earlier.filter(({ from }) => !bySource(touched, from))];
}

/** Types of new columns, by their first values. */
async function guessed(
  files: readonly Staged[],
  csv: Dialect,
  columns: DraftColumn[],
  unknown: ReadonlySet<DraftColumn>,
): Promise<DraftColumn[]> {
  const plain = columns.map(({ from }, at) => ({ name: `c${at}`, from, type: "string" }));
  const looks = await Promise.all(files.map((staged) => look(staged, { ...csv, ragged_rows: "pad" }, plain)));
  const rows = looks.flatMap((one) => one.rows ?? []);
  const decimal = itemOf(csv, "decimal") === "," ? "," : ".";
  return columns.map((column, at) =>
    !unknown.has(column)
      ? column
      : {
          ...column,
          type: guess(
            rows.map((row) => row[at] as Cell),
            decimal,
          ),
        },
  );
}

/** The narrowest type of all values. */
export function guess(cells: Cell[], decimal: "." | ","): string {
  const texts = cells.filter((cell) => typeof cell === "string" && cell !== "") as string[];
  const all = (is: RegExp) => texts.length > 0 && texts.every((text) => is.test(text));
  if (all(/^(0|-?[1-9]\d{0,17})$/)) return "int64";
  if (all(decimal === "," ? /^-?\d+(,\d+)?$/ : /^-?\d+(\.\d+)?$/)) return "float64";
  if (all(/^\d{4}-\d{2}-\d{2}$/)) return "date";
  if (all(/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?$/)) return "timestamp";
  return all(/^(true|false)$/) ? "boolean" : "string";
}

export function snake(text: string): string {
  const parted = text.trim().replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1_$2");
  const name = parted
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, 60);
  return /^\p{N}/u.test(name) ? `c${name}` : name;
}

function unique(names: string[]): string[] {
  const taken = new Set<string>();
  return names.map((base) => {
    let name = base;
    for (let suffix = 2; taken.has(name); suffix += 1) name = `${base}_${suffix}`;
    taken.add(name);
    return name;
  });
}
