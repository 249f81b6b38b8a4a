/** Edits one column of a config, and keeps the rest of its text as it is written. */
import { spanOf, type StoredConfig, type StoredMapping } from "../api/config";
import type { ColumnProposal, Inferred } from "../api/types";
import { formatted } from "../format/json";
import { allowingRejects, headerOf, headersOf, isRead, isSame, list, suits, type StoredColumn } from "./changes";
import { isDialect, itemOf } from "./dialect";

type Members = Record<string, unknown>;

export interface ColumnEdit {
  /** Changed members of the column; an undefined one has its default. */
  members: Members;
  /** Changed members of its entries in variants, by index. */
  variants: Readonly<Record<number, Members>>;
  /** The ratio of rejected rows that a run allows. */
  ratio?: number;
}

export const NO_EDIT: ColumnEdit = { members: {}, variants: {} };

/** A column of a config, and the files that write it differently. */
export interface ColumnPlace {
  mapping: StoredMapping;
  column: StoredColumn;
  /** JSON Pointer of the mapping. */
  table: string;
  /** JSON Pointer of the column. */
  path: string;
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Finds a column; undefined if the config has none of that name. */
export function placeOf(config: StoredConfig, table: string, name: string): ColumnPlace | undefined {
  const at = (config.mappings ?? []).findIndex((one) => one.table === table);
  const mapping = config.mappings?.[at];
  const listed = list(mapping?.columns);
  const index = listed.findIndex((one) => isMembers(one) && one.name === name);
  if (!mapping || index < 0) return undefined;
  return {
    mapping,
    column: listed[index] as StoredColumn,
    table: `/mappings/${at}`,
    path: `/mappings/${at}/columns/${index}`,
  };
}

/** Index of the entry of a variant for a column; -1: the variant reads it as the table does. */
export const entryOf = (variant: unknown, name: unknown): number =>
  isMembers(variant) ? list(variant.columns).findIndex((one) => isMembers(one) && one.name === name) : -1;

const DEFAULTS: Members = { formats: [], number_format: {}, nullable: true, on_error: "reject" };

const isDefault = (member: string, value: unknown): boolean =>
  value === undefined || value === null || value === "" || isSame(value, DEFAULTS[member]);

/** The column with members changed: defaults are omitted, unless they are written already; so is what its type doesn't have. */
function changed(column: Members, members: Members, type: unknown): Members {
  const kept = Object.entries(column).filter(
    ([name, value]) =>
      suits(name, type) && (!(name in members) || isDefault(name, value) === isDefault(name, members[name])),
  );
  const given = Object.entries(members).filter(([name, value]) => suits(name, type) && !isDefault(name, value));
  return { ...Object.fromEntries(kept), ...Object.fromEntries(given) };
}

const hasHeader = (csv: unknown): boolean => itemOf(isDialect(csv) ? csv : {}, "header") === true;

/** The header that a renamed column is still read from. */
function keepsFrom(column: Members, csv: unknown, after: Members): Members {
  const isByName = column.from === undefined && isRead(column) && hasHeader(csv);
  return isByName && String(column.name).toLowerCase() !== String(after.name).toLowerCase()
    ? { ...after, from: column.name }
    : after;
}

/** The mapping with the column changed, its entries in variants and the partitions and sort order by it. */
export function editedMapping({ mapping, column }: ColumnPlace, edit: ColumnEdit): StoredMapping {
  const type = edit.members.type ?? column.type;
  const after = keepsFrom(column, mapping.csv, changed(column, edit.members, type));
  const { name } = after;
  const renamed = (one: unknown) =>
    one === column.name ? name : isMembers(one) && one.column === column.name ? { ...one, column: name } : one;
  const variants = list(mapping.variants).map((variant, at) => {
    const own = edit.variants[at];
    const index = entryOf(variant, column.name);
    if (!isMembers(variant) || (index < 0 && !own)) return variant;
    const listed = list(variant.columns);
    const entry = (listed[index] ?? { name, ...(column.from === undefined ? {} : { from: column.from }) }) as Members;
    const made = keepsFrom(entry, variant.csv, changed({ ...entry, name }, own ?? {}, type));
    return { ...variant, columns: index < 0 ? [...listed, made] : listed.with(index, made) };
  });
  const made: StoredMapping = {
    ...mapping,
    ...(mapping.variants === undefined ? {} : { variants }),
    columns: list(mapping.columns).map((one) => (one === column ? after : one)),
    ...(mapping.partition_by === undefined ? {} : { partition_by: list(mapping.partition_by).map(renamed) }),
    ...(mapping.sort_by === undefined ? {} : { sort_by: list(mapping.sort_by).map(renamed) }),
  };
  return edit.ratio === undefined ? made : allowingRejects(made, edit.ratio);
}

interface Splice {
  from: number;
  to: number;
  text: string;
}

const indentOf = (text: string, at: number): number =>
  /^ */.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1))?.[0].length ?? 0;

function splices(text: string, path: (string | number)[], before: unknown, after: unknown): Splice[] {
  if (isSame(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((one, at) => splices(text, [...path, at], one, after[at]));
  const span = spanOf(text, path);
  if (!span) return [];
  const written = (value: unknown) => formatted(JSON.stringify(value), indentOf(text, span.from));
  if (isMembers(before) && isMembers(after)) {
    const [names, kept] = [Object.keys(before), Object.keys(after)];
    const last = spanOf(text, [...path, names.at(-1) ?? ""]);
    if (last && names.every((name, at) => kept[at] === name)) {
      // New members are on lines of their own where the others are.
      const blank = /^\s*/.exec(text.slice(span.from + 1))?.[0] ?? "";
      const added = kept.slice(names.length).map((name) => `,${blank}${JSON.stringify(name)}: ${written(after[name])}`);
      return [
        ...names.flatMap((name) => splices(text, [...path, name], before[name], after[name])),
        { from: last.to, to: last.to, text: added.join("") },
      ];
    }
  }
  return [{ ...span, text: written(after) }];
}

/** The text of a config with the column changed. */
export function editedText(text: string, place: ColumnPlace, edit: ColumnEdit): string {
  const before = JSON.parse(text) as StoredConfig;
  const at = Number(place.table.split("/")[2]);
  const after = { ...before, mappings: (before.mappings ?? []).with(at, editedMapping(place, edit)) };
  const made = splices(text, [], before, after)
    .sort((a, b) => b.from - a.from)
    .reduce((now, one) => now.slice(0, one.from) + one.text + now.slice(one.to), text);
  // A name that an object has twice has another place.
  return isSame(JSON.parse(made), after) ? made : formatted(JSON.stringify(after));
}

/** What the files show about a column. */
export const proposalOf = ({ column }: ColumnPlace, { columns }: Inferred): ColumnProposal | undefined => {
  const headers = headersOf(column);
  return columns.find((one) =>
    typeof one.from === "number" ? one.from === column.from : headers.includes(headerOf(one)),
  );
};

/** Another column of the examples: the text of the cells. */
export const RAW = "lakemill text of the cells";

/** The mapping that reads every row, with the texts of a column's cells beside its values. */
export function exampleMapping(mapping: StoredMapping, column: Members): StoredMapping {
  const { table, files, csv = {}, missing_columns = "fail", duplicate_columns = "fail" } = mapping;
  const read = (list(mapping.columns) as Members[]).filter(({ expr }) => (expr ?? null) === null);
  const from = column.from ?? (hasHeader(csv) ? column.name : read.findIndex(({ name }) => name === column.name));
  const lenient = { nullable: true, on_error: "null" };
  const variants = (list(mapping.variants) as Members[]).map((variant) => {
    const entries = list(variant.columns) as Members[];
    const own = entries[entryOf(variant, column.name)];
    const places = own ? [{ name: RAW, from: own.from ?? (hasHeader(variant.csv) ? own.name : from) }] : [];
    return { ...variant, columns: [...entries, ...places] };
  });
  const columns = [...read.map((one) => ({ ...one, ...lenient })), { name: RAW, from, type: "string", ...lenient }];
  return { table, files, csv, missing_columns, duplicate_columns, variants, columns };
}
