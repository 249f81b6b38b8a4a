/** Draft of a new pipeline: the proposal with the user's changes. */
import { COLUMN_NAME_BYTES_MAX, TABLE_NAME } from "../../api/rules";
import type { ColumnProposal, Inferred } from "../../api/types";
import { typeWords } from "../../format/types";
import { freeSlug, slugFault, slugFrom } from "../../format/slug";
import { isDialect, itemOf, type Dialect } from "../../tables/dialect";
import { REJECT_RATIOS } from "../../tables/rejects";
import { pathColumnOf, type PathColumn } from "../../tables/path-columns";

export interface DraftColumn {
  /** Stable while the name is edited. */
  id: number;
  name: string;
  from: ColumnProposal["from"];
  type: string;
  formats: string[];
  /** How its numbers are written, if that isn't as in the rest of the file. */
  numberFormat?: ColumnProposal["number_format"];
  timezone: string | undefined;
  nullable: boolean;
  included: boolean;
  /** Evidence for the type; none after a change of the CSV settings. */
  evidence: ColumnProposal["evidence"] | undefined;
}

/** Files of another format than the table's. */
export interface DraftVariant {
  /** The samples of these files. */
  keys: string[];
  dialect: Dialect;
  /** How they write some columns, by the proposed names. */
  columns: VariantColumn[];
}

interface VariantColumn {
  name: string;
  from?: ColumnProposal["from"];
  formats?: string[];
  number_format?: ColumnProposal["number_format"];
  timezone?: string;
}

export interface Partitioning {
  /** Value of `partition_by`, with the proposed column name. */
  value: unknown;
  why: string;
  /** Estimated number of files for the sample. */
  files: number | undefined;
}

export interface Draft {
  table: string;
  dialect: Dialect;
  variants: DraftVariant[];
  columns: DraftColumn[];
  /** Columns from the names of the files. */
  paths: PathColumn[];
  /** Index of the suggestion; -1: none. */
  partition: number;
  sorted: boolean;
  /** Maximum ratio of rejected rows. */
  rejectsMax: number;
  /** Whether some files lack some of the columns, once they were split anew. */
  partial?: boolean;
}

export function draftOf(inferred: Inferred): Draft {
  const { sample } = inferred;
  const dialect = isDialect(inferred.csv) ? inferred.csv : {};
  const refused = sample.rows_read > 0 ? (sample.rows_refused + sample.rows_misfit) / sample.rows_read : 0;
  return {
    table: inferred.table,
    dialect,
    variants: (inferred.variants ?? []).map(({ keys, csv, columns }) => ({
      keys,
      dialect: isDialect(csv) ? csv : {},
      columns: columns as VariantColumn[],
    })),
    columns: inferred.columns.map((proposal, id) => ({
      id,
      name: proposal.name,
      from: proposal.from,
      type: proposal.type,
      formats: proposal.formats ?? [],
      ...(proposal.number_format ? { numberFormat: proposal.number_format } : {}),
      timezone: proposal.timezone ?? undefined,
      nullable: proposal.nullable || hasNulls(proposal.evidence, dialect),
      included: true,
      evidence: proposal.evidence,
    })),
    paths: [],
    partition: partitionings(inferred).length > 0 ? 0 : -1,
    sorted: false,
    rejectsMax: refused === 0 ? 0 : (REJECT_RATIOS.find((share) => share >= refused * 2) ?? 1),
  };
}

/** Whether the column has cells that the dialect reads as null. */
const hasNulls = (evidence: ColumnProposal["evidence"] | undefined, dialect: Dialect): boolean =>
  (evidence?.tokens ?? []).some(({ token }) => (itemOf(dialect, "null_values") as string[]).includes(token));

/** Columns after a change of the null values: those that have them are nullable. */
export function withNulls(columns: DraftColumn[], dialect: Dialect): DraftColumn[] {
  return columns.map((column) =>
    !column.nullable && (column.evidence === undefined || hasNulls(column.evidence, dialect))
      ? { ...column, nullable: true }
      : column,
  );
}

/** Column and transform of a suggestion. */
function columnAndTransform(value: unknown): { column: string; transform: string } | undefined {
  if (typeof value === "string") return { column: value, transform: "identity" };
  if (typeof value !== "object" || value === null || !("column" in value) || typeof value.column !== "string")
    return undefined;
  const transform = "transform" in value && typeof value.transform === "string" ? value.transform : "identity";
  return { column: value.column, transform };
}

/** Suggested partitionings with their number of files. */
export function partitionings(inferred: Inferred): Partitioning[] {
  return inferred.suggestions
    .filter(({ kind }) => kind === "partition_by")
    .map(({ value, why }) => ({ value, why, files: filesOf(value, why, inferred) }));
}

function filesOf(value: unknown, why: string, { columns }: Inferred): number | undefined {
  const by = columnAndTransform(value);
  const evidence = columns.find(({ name }) => name === by?.column)?.evidence;
  if (!by || !evidence) return undefined;
  const days = /has (\d+) different days/.exec(why)?.[1];
  if (by.transform === "day" && days) return Number(days);
  if (by.transform === "month" && days) return Math.max(1, Math.ceil(Number(days) / 30));
  return by.transform === "identity" && evidence.distinct_exact ? evidence.distinct : undefined;
}

/** Description: "by month of `pickup_at`". */
export function partitionWords(value: unknown): string {
  const by = columnAndTransform(value);
  if (!by) return "as suggested";
  return by.transform === "identity" ? `by ${by.column}` : `by ${by.transform} of ${by.column}`;
}

/** The suggestion with current column names; undefined if its column is excluded. */
function renamed(value: unknown, inferred: Inferred, columns: DraftColumn[]): unknown {
  const by = columnAndTransform(value);
  const at = inferred.columns.find(({ name }) => name === by?.column);
  const now = columns.find(({ from, included }) => included && at && same(from, at.from));
  if (!by || !now) return undefined;
  return typeof value === "string" ? now.name : { ...(value as object), column: now.name };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const isNumber = (type: string): boolean => /^(u?int|float|decimal)/.test(type);

function columnOf(column: DraftColumn): Record<string, unknown> {
  const { name, from, type, formats, numberFormat, timezone, nullable } = column;
  const own = typeof from === "string" && from.toLowerCase() === name.toLowerCase();
  return {
    name,
    ...(own ? {} : { from }),
    type,
    ...(formats.length > 0 ? { formats } : {}),
    ...(numberFormat && isNumber(type) ? { number_format: numberFormat } : {}),
    ...(timezone ? { timezone } : {}),
    ...(nullable ? {} : { nullable: false }),
  };
}

/** The variant as in a config. */
function variantOf(variant: DraftVariant, draft: Draft, inferred: Inferred, files: string[]): Record<string, unknown> {
  const columns = variant.columns.flatMap(({ name, from = name, ...formats }) => {
    const proposed = inferred.columns.find((column) => column.name === name);
    const now = draft.columns.find((column) => column.included && proposed && same(column.from, proposed.from));
    if (!proposed || !now) return [];
    const own = typeof from === "string" && from.toLowerCase() === now.name.toLowerCase();
    // Formats are of the proposed type.
    return [{ name: now.name, ...(own ? {} : { from }), ...(now.type === proposed.type ? formats : {}) }];
  });
  return { files, csv: variant.dialect, ...(columns.length > 0 ? { columns } : {}) };
}

/** The mapping of the table. `files`: globs relative to the pipeline's folder; `filesOfVariant`: the same. */
export function mappingOf(
  draft: Draft,
  inferred: Inferred,
  files: string[],
  filesOfVariant: (variant: DraftVariant) => string[] = () => [],
): Record<string, unknown> {
  const { dialect, columns, rejectsMax } = draft;
  const variants = draft.variants
    .map((variant) => [variant, filesOfVariant(variant)] as const)
    .filter(([, globs]) => globs.length > 0)
    .map(([variant, globs]) => variantOf(variant, draft, inferred, globs));
  const partition = renamed(partitionings(inferred)[draft.partition]?.value, inferred, columns);
  const sort = renamed(sortSuggestion(inferred), inferred, columns);
  return {
    table: draft.table,
    files,
    ...(Object.keys(dialect).length > 0 ? { csv: dialect } : {}),
    ...(variants.length > 0 ? { variants } : {}),
    columns: [...columns.filter(({ included }) => included).map(columnOf), ...draft.paths.map(pathColumnOf)],
    ...((draft.partial ?? inferred.partial) ? { missing_columns: "null" } : {}),
    ...(rejectsMax > 0 ? { rejects: { max_ratio: rejectsMax } } : {}),
    ...(partition === undefined ? {} : { partition_by: [partition] }),
    ...(draft.sorted && sort !== undefined ? { sort_by: [sort] } : {}),
  };
}

/** A complete config. */
export const configOf = (title: string, mappings: Record<string, unknown>[]): Record<string, unknown> => ({
  version: 1,
  title,
  mappings,
});

export const sortSuggestion = (inferred: Inferred): unknown =>
  inferred.suggestions.find(({ kind }) => kind === "sort_by")?.value;

/** A free slug from a name. */
export const slugOf = (name: string, taken: ReadonlySet<string>): string => freeSlug(slugFrom(name) || "data", taken);

export function slugProblem(slug: string, taken: ReadonlySet<string>): string | undefined {
  const taking = taken.has(slug) ? `A pipeline named ${slug} already exists. Choose another URL name.` : undefined;
  return slugFault(slug) ?? taking;
}

export function tableProblem(table: string, taken: ReadonlySet<string> = new Set()): string | undefined {
  if (taken.has(table)) return `There is already a table ${table}. Choose another name.`;
  if (TABLE_NAME.test(table)) return undefined;
  return "Use at most 63 lower-case letters, digits and `_`, starting with a letter.";
}

/** A column whose proposal lost something, and what. */
export interface Concern {
  id: number;
  name: string;
  text: string;
}

/** Columns with warnings, while they are included and have the proposed type. */
export const concernsOf = (columns: readonly DraftColumn[], inferred: Inferred): Concern[] =>
  columns.flatMap(({ id, name, from, type, formats, included, evidence }) => {
    const [warning] = evidence?.warnings ?? [];
    const proposed = inferred.columns.find((one) => same(one.from, from));
    const isKept = type === proposed?.type && same(formats, proposed.formats ?? []);
    if (!included || !isKept || warning === undefined || evidence?.values === 0) return [];
    const text = warning.replace(/[;,] (so the column|the column|it|they) (stays?|is read as) text$/, "");
    return [{ id, name, text: `is ${typeWords(type)}: ${text}` }];
  });

/** Validation messages of included columns, by ID. */
export function columnProblems(columns: DraftColumn[]): Map<number, string> {
  const problems = new Map<number, string>();
  const seen = new Set<string>();
  for (const { id, name, included } of columns) {
    if (!included) continue;
    const known = name.toLowerCase();
    if (name.trim() === "") problems.set(id, "Enter a column name.");
    else if (new TextEncoder().encode(name).length > COLUMN_NAME_BYTES_MAX)
      problems.set(id, `Use at most ${COLUMN_NAME_BYTES_MAX} bytes.`);
    else if (seen.has(known)) problems.set(id, `The column ${name} exists twice.`);
    seen.add(known);
  }
  return problems;
}
