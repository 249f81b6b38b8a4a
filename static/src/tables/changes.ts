/**
 * Proposes changes of a mapping that fit it to files: new columns, other types and number formats, nulls, footers.
 * Evidence is taken from the files.
 */
import type { StoredConfig, StoredMapping } from "../api/config";
import type { ColumnProposal, Inferred } from "../api/types";
import { patternOf } from "../format/time-pattern";
import { typeWords } from "../format/types";
import { exactGlob } from "../uploads/globs";
import { csvOf as csvOfFile } from "../uploads/parts";
import { footerMarks, formatText, isDialect, isOtherFormat, SIGNS, type Dialect } from "./dialect";

export interface MappingChange {
  id: string;
  /** The effect, as a label. */
  label: string;
  /** The evidence. */
  why: string;
  /** Whether it is preselected. */
  proposed: boolean;
  /** Others depend on it, and are applied after it. */
  isFirst?: boolean;
  apply: (mapping: StoredMapping) => StoredMapping;
}

export interface StoredColumn {
  name?: unknown;
  from?: unknown;
  from_path?: unknown;
  expr?: unknown;
  type?: unknown;
  nullable?: unknown;
  [member: string]: unknown;
}

/** Values that the mapping rejects now, by column. `why`: of the first that can't be read. */
export type RejectedByColumn = ReadonlyMap<string, { count: number; nulls: boolean; why?: string | undefined }>;

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

export const columnsOf = (mapping: StoredMapping): StoredColumn[] =>
  list(mapping.columns).filter((one): one is StoredColumn => typeof one === "object" && one !== null);

/** Whether two values are written alike. */
export const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Whether a column is read from the records of the files: neither computed nor from their paths. */
export const isRead = ({ expr, from_path }: StoredColumn): boolean => (expr ?? from_path ?? null) === null;

/** The headers that a column reads, in lower case. */
export function headersOf({ name, from, ...column }: StoredColumn): string[] {
  if (!isRead(column)) return [];
  const names = from === undefined || from === null ? [name] : [from].flat();
  return names.filter((one) => typeof one === "string").map((one) => one.toLowerCase());
}

/** The headers that the columns of a mapping read, in lower case. */
export const headersOfTable = (mapping: StoredMapping): ReadonlySet<string> =>
  new Set(columnsOf(mapping).flatMap(headersOf));

export const headerOf = ({ from, name }: ColumnProposal): string =>
  (typeof from === "string" ? from : name).toLowerCase();

/** `decimal, thousands separator comma, with $`. */
export function typeLine({ type, formats = [], number_format: format }: ColumnProposal): string {
  const parts = [typeWords(type)];
  if (formats.length > 0) parts.push(formats.map(patternOf).join(" or "));
  if (format?.thousands) parts.push(`thousands separator ${SIGNS[format.thousands] ?? format.thousands}`);
  if (format && (format.currency ?? []).length > 0) parts.push(`with ${(format.currency ?? []).join(" or ")}`);
  if (format?.percent) parts.push("percent");
  if (format?.negative === "parentheses") parts.push("negative in parentheses");
  return parts.join(", ");
}

const PLAIN_NUMBER: Record<string, unknown> = {
  decimal: null,
  thousands: null,
  currency: [],
  percent: false,
  negative: "minus",
};

/** The number format without the members that have their default. */
export const numberFormatOf = (format: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(format).filter(([name, value]) => !isSame(value, PLAIN_NUMBER[name])));

/** The members of a column that say how its values are read. */
export function readingOf({ type, formats = [], number_format: format, timezone }: ColumnProposal): StoredColumn {
  const given = numberFormatOf(format ?? {});
  return {
    type,
    ...(formats.length > 0 ? { formats } : {}),
    ...(Object.keys(given).length > 0 ? { number_format: given } : {}),
    ...(timezone ? { timezone } : {}),
  };
}

function currencyOf(column: object): unknown[] {
  const { number_format: format } = column as StoredColumn;
  return typeof format === "object" && format !== null ? list((format as { currency?: unknown }).currency) : [];
}

/** Signs of currencies that a column of amounts in another currency has in the files. */
function otherCurrencies(column: StoredColumn, found: ColumnProposal): unknown[] {
  const own = currencyOf(column);
  return own.length > 0 ? currencyOf(found).filter((sign) => !own.includes(sign)) : [];
}

/** The reading, of the same type, with the number format of the column where the files have none. */
function withOwnNumbers(reading: StoredColumn, { type, number_format: own }: StoredColumn): StoredColumn {
  if (type !== reading.type || typeof own !== "object" || own === null || !reading.number_format) return reading;
  const found = reading.number_format as Record<string, unknown>;
  const currency = [...new Set([...currencyOf({ number_format: own }), ...list(found.currency)])];
  return { ...reading, number_format: { ...own, ...found, ...(currency.length > 0 ? { currency } : {}) } };
}

export const READING = ["type", "formats", "number_format", "timezone"];

/** Whether a column of a type has the member. */
export function suits(member: string, type: unknown): boolean {
  if (member === "formats") return isTemporal(type);
  if (member === "number_format") return isNumber(String(type));
  return member !== "timezone" || type === "timestamptz";
}

function withColumn<T extends StoredMapping>(
  mapping: T,
  name: string,
  change: (column: StoredColumn) => StoredColumn,
): T {
  const columns = list(mapping.columns).map((one) =>
    typeof one === "object" && one !== null && (one as StoredColumn).name === name ? change(one as StoredColumn) : one,
  );
  return { ...mapping, columns };
}

/** The mapping without the members that a column of the type doesn't have, also in its variants. */
function withSuited(mapping: StoredMapping, name: string, type: unknown): StoredMapping {
  const suited = (column: StoredColumn): StoredColumn =>
    Object.fromEntries(Object.entries(column).filter(([member]) => suits(member, type)));
  const made = withColumn(mapping, name, suited);
  if (!Array.isArray(mapping.variants)) return made;
  const variants = (mapping.variants as StoredMapping[]).map((one) =>
    Array.isArray(one.columns) ? withColumn(one, name, suited) : one,
  );
  return { ...made, variants };
}

const withoutNullable = (column: StoredColumn): StoredColumn =>
  Object.fromEntries(Object.entries(column).filter(([member]) => member !== "nullable"));

const csvOf = (mapping: StoredMapping): Record<string, unknown> =>
  typeof mapping.csv === "object" && mapping.csv !== null ? (mapping.csv as Record<string, unknown>) : {};

const withCsv = (mapping: StoredMapping, members: Record<string, unknown>): StoredMapping => ({
  ...mapping,
  csv: { ...csvOf(mapping), ...members },
});

/** Headers of columns: those that were asked for, if only some were, and those that the table has long left out. */
export interface Headers {
  wanted: readonly string[];
  ignored: readonly string[];
}

/** Columns of the files that no column of the mapping reads. */
function newColumns(mapping: StoredMapping, inferred: Inferred, { wanted, ignored }: Headers): MappingChange[] {
  const columns = columnsOf(mapping);
  const read = new Set(columns.flatMap(headersOf));
  const names = new Set(columns.map(({ name }) => text(name).toLowerCase()));
  const [asked, left] = [wanted, ignored].map((some) => new Set(some.map((name) => name.toLowerCase())));
  // Files without any column of the table are hardly meant for it.
  const isForeign = read.size > 0 && !inferred.columns.some((column) => read.has(headerOf(column)));
  const isProposed = (header: string) =>
    !isForeign && (wanted.length > 0 ? asked?.has(header) : !left?.has(header)) === true;
  return inferred.columns
    .filter((column) => typeof column.from === "string" && !read.has(headerOf(column)))
    .map((column) => {
      let name = column.name;
      for (let suffix = 2; names.has(name.toLowerCase()); suffix += 1) name = `${column.name}_${suffix}`;
      names.add(name.toLowerCase());
      const { from } = column;
      const own = text(from).toLowerCase() === name.toLowerCase();
      const added = { name, ...(own ? {} : { from }), ...readingOf(column) };
      return {
        id: `column ${name}`,
        label: `Add column ${name} (${typeLine(column)})`,
        why: column.evidence.why,
        proposed: isProposed(headerOf(column)),
        // Other files lack it.
        apply: (before) => ({ ...before, columns: [...list(before.columns), added], missing_columns: "null" }),
      };
    });
}

/** Nulls for columns that none of the files has. */
function missingColumns(mapping: StoredMapping, inferred: Inferred): MappingChange[] {
  const there = new Set(inferred.columns.map(headerOf));
  const missing = columnsOf(mapping).filter((column) => {
    const headers = headersOf(column);
    return headers.length > 0 && !headers.some((header) => there.has(header));
  });
  if (missing.length === 0 || mapping.missing_columns === "null") return [];
  const names = missing.map(({ name }) => text(name)).join(", ");
  const nullable = (given: StoredMapping) =>
    missing.reduce((made, { name }) => withColumn(made, text(name), withoutNullable), given);
  return [
    {
      id: "missing_columns",
      label: `Fill ${names} with null where a file lacks ${missing.length === 1 ? "it" : "them"}`,
      why: "the files have no such header",
      proposed: false,
      apply: (given) => ({ ...nullable(given), missing_columns: "null" }),
    },
  ];
}

/** The formats of dates without one, and of other times. */
const [ISO_DATE, ISO] = ["%Y-%m-%d", "iso"];
export const isTemporal = (type: unknown): boolean => ["date", "time", "timestamp", "timestamptz"].includes(text(type));

/** The formats of a column of times, that of ISO 8601 included. */
function timeFormats({ type, formats }: { type?: unknown; formats?: unknown }): string[] {
  const given = list(formats).map(String);
  if (given.length > 0) return given;
  return [type === "date" ? ISO_DATE : ISO];
}

const isDayOrTime = (type: unknown): boolean => type === "date" || type === "timestamp";

/** Whether one column can't have the formats of both: a value would have two readings, or it would be read slower. */
function isTimeConflict(column: StoredColumn, found: ColumnProposal): boolean {
  if (!isTemporal(column.type) || column.type !== found.type) return false;
  const [ours, theirs] = [timeFormats(column), timeFormats(found)];
  if (isSame(list(column.formats), found.formats ?? [])) return false;
  // A day, a month and a year of two digits look alike.
  const shape = (format: string) => format.replace(/%[dy]/g, "%m");
  if ([...ours, ...theirs].includes(ISO)) return true;
  return ours.some((one) => theirs.some((other) => one !== other && shape(one) === shape(other)));
}

/** The change by which a column is read in other formats of times, too. */
function moreTimes(name: string, column: StoredColumn, found: ColumnProposal): MappingChange[] {
  const before = timeFormats(column);
  const more = timeFormats(found).filter((format) => !before.includes(format));
  if (isTimeConflict(column, found) || more.length === 0) return [];
  const formats = [...before, ...more];
  const isMixed = column.type !== found.type;
  const type = isMixed ? "timestamp" : column.type;
  const becomes = type === column.type ? "" : `${typeWords("timestamp")}, and `;
  const midnight = isMixed ? "; a date without a time of day is midnight" : "";
  return [
    {
      id: `reading ${name}`,
      label: `Read ${name} as ${becomes}${more.map(patternOf).join(" or ")}, too`,
      why: `${found.evidence.why}; other files keep ${before.map(patternOf).join(" or ")}${midnight}`,
      proposed: true,
      apply: (given) => {
        const read = withColumn(given, name, (one) => ({ ...one, type, formats }));
        return becomes ? byDays(read, name) : read;
      },
    },
  ];
}

/** The mapping, cut by the days of a column instead of its values. */
function byDays(mapping: StoredMapping, name: string): StoredMapping {
  if (!Array.isArray(mapping.partition_by)) return mapping;
  const cut = (one: unknown): unknown => {
    const by = (typeof one === "object" && one !== null ? one : { column: one }) as Record<string, unknown>;
    return by.column === name && (by.transform ?? "identity") === "identity" ? { ...by, transform: "day" } : one;
  };
  return { ...mapping, partition_by: mapping.partition_by.map(cut) };
}

/** `the table's amounts are in $, and the sign isn't stored: 5 € would be added to 5 $ as 10`. */
const mixedCurrencies = (column: StoredColumn, others: readonly unknown[]): string => {
  const own = currencyOf(column).map(String);
  return `the table's amounts are in ${own.join(" or ")}, and the sign isn't stored: 5 ${others.map(String).join(" and 5 ")} would be added to 5 ${own.join("")} as 10`;
};

/** The service's reason for text; most of the values may still be of the column's type. */
const NO_TYPE = "no other type matches its values";

/** Other readings of columns whose values are rejected. */
function readings(mapping: StoredMapping, inferred: Inferred, rejected: RejectedByColumn): MappingChange[] {
  const changes: MappingChange[] = [];
  for (const column of columnsOf(mapping)) {
    const name = text(column.name);
    const trouble = rejected.get(name);
    const headers = headersOf(column);
    const found = inferred.columns.find((one) => headers.includes(headerOf(one)));
    if (!trouble || !found) continue;
    const isTimed = isTemporal(column.type) && column.type === found.type;
    if (isTimed || (isDayOrTime(column.type) && isDayOrTime(found.type))) {
      changes.push(...moreTimes(name, column, found));
      continue;
    }
    const reading = withOwnNumbers(readingOf(found), column);
    // Values that the files have no longer, such as those with a sign, stay accepted.
    const same = column.type === found.type;
    const isNew = (member: string) => !isSame(reading[member], column[member]);
    const others = otherCurrencies(column, found);
    const shown = found.evidence.why === NO_TYPE && trouble.why !== undefined ? trouble.why : found.evidence.why;
    const own = same ? shown : `${shown}; the config reads ${typeWords(text(column.type))}`;
    if (Object.keys(reading).some(isNew))
      changes.push({
        id: `reading ${name}`,
        label: `Read ${name} as ${typeLine(found)}`,
        why: [own, ...(others.length > 0 ? [mixedCurrencies(column, others)] : [])].join("; "),
        // Text accepts any value, including mistakes.
        proposed: found.type !== "string" && others.length === 0,
        apply: (given) => {
          const read = withColumn(given, name, (one) => ({
            ...Object.fromEntries(Object.entries(one).filter(([member]) => same || !READING.includes(member))),
            ...reading,
          }));
          return withSuited(read, name, found.type);
        },
      });
    if (column.nullable === false && trouble.nulls)
      changes.push({
        id: `nulls ${name}`,
        label: `Allow nulls in ${name}`,
        why: "some of its values are null",
        proposed: true,
        apply: (given) => withColumn(given, name, withoutNullable),
      });
  }
  return changes;
}

/** Settings of all columns. */
function settings(mapping: StoredMapping, inferred: Inferred): MappingChange[] {
  const csv = csvOf(mapping);
  const found = inferred.csv_full;
  const why = (item: string) => inferred.findings.find((one) => one.item === item)?.why ?? "found in the files";
  const changes: MappingChange[] = [];
  const nulls = Array.isArray(csv.null_values) ? (csv.null_values as string[]) : [""];
  const more = found.null_values.filter((token) => !nulls.includes(token));
  if (more.length > 0)
    changes.push({
      id: "null_values",
      label: `Read ${more.map((token) => `“${token}”`).join(", ")} as null`,
      why: why("null_values"),
      proposed: true,
      apply: (given) => withCsv(given, { null_values: [...nulls, ...more] }),
    });
  if (found.skip_footer_rows > 0 && !csv.skip_footer_rows && found.footer_values)
    changes.push({
      id: "footer",
      label: `Skip last rows starting with ${footerMarks(found.footer_values)}`,
      why: why("skip_footer_rows"),
      proposed: true,
      apply: (given) =>
        withCsv(given, { skip_footer_rows: found.skip_footer_rows, footer_values: found.footer_values }),
    });
  if (found.thousands !== null && !csv.thousands)
    changes.push({
      id: "thousands",
      label: `Accept ${SIGNS[found.thousands] ?? `“${found.thousands}”`} as the thousands separator`,
      why: why("thousands"),
      proposed: true,
      apply: (given) => withCsv(given, { thousands: found.thousands }),
    });
  if (found.quotes === "lenient" && csv.quotes !== "lenient")
    changes.push({
      id: "quotes",
      label: "Accept quotes within values",
      why: why("quotes"),
      proposed: true,
      apply: (given) => withCsv(given, { quotes: "lenient" }),
    });
  if (found.trim && csv.trim !== true)
    changes.push({
      id: "trim",
      label: "Ignore spaces around values",
      why: why("trim"),
      proposed: true,
      apply: (given) => withCsv(given, { trim: true }),
    });
  return changes;
}

/** A file that the mapping doesn't fit, relative to the pipeline's folder. */
export interface MisfitFile {
  file: string;
  /** The evidence. */
  why: string;
}

/** Files of one format among those that were compared. */
interface FormatOfFiles {
  keys: string[];
  csv: Dialect;
  columns: ColumnProposal[];
}

/** The formats of the files, the table's proposed one first. */
function formatsOf({ csv, columns, files_read, variants = [] }: Inferred): FormatOfFiles[] {
  const others = variants.map((variant) => ({
    keys: variant.keys,
    csv: isDialect(variant.csv) ? variant.csv : {},
    columns: columns.map((column): ColumnProposal => {
      const own = (variant.columns as Partial<ColumnProposal>[]).find(({ name }) => name === column.name);
      if (!own) return column;
      const { from = column.name, formats = [], number_format = null, timezone = null } = own;
      return { ...column, from, formats, number_format, timezone };
    }),
  }));
  const taken = new Set(others.flatMap(({ keys }) => keys));
  const keys = files_read.map(({ key }) => key).filter((key) => !taken.has(key));
  return [{ keys, csv: isDialect(csv) ? csv : {}, columns }, ...others];
}

export const isNumber = (type: string): boolean => /^(u?int|float|decimal)/.test(type);

/** How files write a column, in its currency only: amounts in others are rejected, since they would be added up with its own. */
function inOwnCurrency(column: StoredColumn, found: ColumnProposal): StoredColumn {
  const reading = readingOf(found);
  if (otherCurrencies(column, found).length === 0) return reading;
  return { ...reading, number_format: { ...(reading.number_format as object), currency: currencyOf(column) } };
}

/** The columns of a mapping that files write differently. */
function columnsOfVariant(mapping: StoredMapping, found: readonly ColumnProposal[]): StoredColumn[] {
  return columnsOf(mapping).flatMap((column) => {
    const headers = headersOf(column);
    const own = found.find((one) => headers.includes(headerOf(one)));
    const [type, ownType] = [text(column.type), own?.type ?? ""];
    if (!own || (type !== ownType && !(isNumber(type) && isNumber(ownType)))) return [];
    const members = READING.filter((member) => member !== "type");
    const pick = (from: StoredColumn) =>
      Object.fromEntries(members.filter((member) => member in from).map((member) => [member, from[member]]));
    const [now, wanted] = [pick(column), pick(inOwnCurrency(column, own))];
    if (isSame(now, wanted)) return [];
    return [{ name: column.name, ...(column.from === undefined ? {} : { from: column.from }), ...wanted }];
  });
}

/**
 * Variants for files of another format than the mapping has for them. `prefix`: of the pipeline's keys; `rejected`: values that
 * the mapping rejects in them.
 */
export function ownFormats(
  mapping: StoredMapping,
  inferred: Inferred,
  misfits: readonly MisfitFile[],
  prefix: string,
  rejected: RejectedByColumn = new Map(),
): MappingChange[] {
  return formatsOf(inferred).flatMap(({ keys, csv: found, columns }) => {
    const hasOtherTimes = columnsOf(mapping).some((column) => {
      const own = columns.find((one) => headersOf(column).includes(headerOf(one)));
      return own && rejected.has(text(column.name)) && isTimeConflict(column, own);
    });
    const files = misfits
      .map(({ file }) => file)
      .filter((file) => keys.includes(`${prefix}${file}`))
      .filter((file) => {
        const now = csvOfFile(mapping, file);
        return hasOtherTimes || isOtherFormat(found, isDialect(now) ? now : {});
      });
    const [first] = files;
    if (first === undefined) return [];
    const now = csvOfFile(mapping, first);
    const given = isDialect(now) ? now : {};
    const csv = isOtherFormat(found, given) ? withValuesOf(given, found) : given;
    const names = files.map((file) => file.slice(file.lastIndexOf("/") + 1));
    const change: MappingChange = {
      id: `format of ${first}`,
      label: `Read ${names.join(", ")} in ${files.length === 1 ? "its" : "their"} own format: ${formatOf(csv, columnsOfVariant(mapping, columns))}`,
      why: "the other files keep theirs",
      proposed: true,
      apply: (given) => {
        const globs = files.map(exactGlob).filter((glob) => !list(given.files).includes(`!${glob}`));
        if (globs.length === 0) return given;
        const entries = columnsOfVariant(given, columns);
        const variant = { files: globs, csv, ...(entries.length > 0 ? { columns: entries } : {}) };
        return { ...given, variants: [variant, ...list(given.variants)] };
      },
    };
    return [change];
  });
}

/** Settings about values, which a table's files share whatever their format is. */
const OF_VALUES = ["true_values", "false_values", "quoted_nulls", "trim"];

/** The dialect of a file, with the table's texts that mean null, and its other settings about values. */
function withValuesOf(given: Dialect, found: Dialect): Dialect {
  const own = Object.fromEntries(Object.entries(given).filter(([item]) => OF_VALUES.includes(item)));
  const nulls = [...new Set([...list(given.null_values), ...list(found.null_values)])];
  return { ...own, ...found, ...(nulls.length > 0 ? { null_values: nulls } : {}) };
}

/** `comma-separated, UTF-8, with header, day as DD/MM/YYYY`. */
function formatOf(csv: Dialect, columns: readonly StoredColumn[]): string {
  const times = columns.filter(({ formats }) => list(formats).length > 0);
  return [
    formatText(csv, []),
    ...times.map(({ name, formats }) => `${text(name)} as ${list(formats).map(String).map(patternOf).join(" or ")}`),
  ].join(", ");
}

/** Leaves single files out. Applied before the formats of files. */
export const leavingOut = (files: readonly MisfitFile[]): MappingChange[] =>
  files.map(({ file, why }) => ({
    id: `leave out ${file}`,
    label: `Leave out ${file}`,
    why,
    proposed: false,
    isFirst: true,
    apply: (given) => ({ ...given, files: [...list(given.files), `!${exactGlob(file)}`] }),
  }));

/** Changes that let the mapping read the files. `rejected`: the present rejects. */
export function changesFor(
  mapping: StoredMapping,
  inferred: Inferred,
  rejected: RejectedByColumn,
  refused: number,
  headers: Headers,
  formats: readonly MappingChange[] = [],
): MappingChange[] {
  const isRejecting = rejected.size > 0 || refused > 0;
  return [
    ...formats,
    ...newColumns(mapping, inferred, headers),
    ...missingColumns(mapping, inferred),
    ...readings(mapping, inferred, rejected),
    // Settings of other formats are not those of the table.
    ...(isRejecting && formats.length === 0 ? settings(mapping, inferred) : []),
  ];
}

/** The config with the table's mapping changed. */
export function withMapping(
  config: StoredConfig,
  table: string,
  change: (mapping: StoredMapping) => StoredMapping,
): StoredConfig {
  return { ...config, mappings: (config.mappings ?? []).map((one) => (one.table === table ? change(one) : one)) };
}

/** The number and the ratio of rejected rows that a mapping allows. */
export function rejectsAllowed({ rejects }: StoredMapping): { rows: number; ratio: number } {
  const given = typeof rejects === "object" && rejects !== null ? (rejects as Record<string, unknown>) : {};
  const number = (value: unknown) => (typeof value === "number" ? value : 0);
  return { rows: number(given.max_rows), ratio: number(given.max_ratio) };
}

/** The mapping with that ratio. */
export function allowingRejects(mapping: StoredMapping, ratio: number): StoredMapping {
  const { rejects } = mapping;
  return { ...mapping, rejects: { ...(typeof rejects === "object" ? rejects : {}), max_ratio: ratio } };
}

/**
 * The table's rows and rejected rows after a run, if more are rejected than allowed. `areStored`: the checked files are
 * among those that the table has.
 */
export function tooManyRejects(
  stored: { rows: number; rows_rejected: number },
  checked: { read: number; rejected: number },
  areStored: boolean,
  allowed: { rows: number; ratio: number },
): { read: number; rejected: number } | undefined {
  const before = stored.rows + stored.rows_rejected;
  const read = areStored ? Math.max(before, checked.read) : before + checked.read;
  const rejected = areStored
    ? Math.max(stored.rows_rejected, checked.rejected)
    : stored.rows_rejected + checked.rejected;
  return rejected > Math.max(allowed.rows, read * allowed.ratio) ? { read, rejected } : undefined;
}
