/** Files to upload whose format differs from their table's: the config gets variants for them before they are sent. */
import { loadConfig, type StoredConfig, type StoredMapping } from "../api/config";
import type { Inferred } from "../api/types";
import { split } from "../format/delimited";
import { readHead } from "../uploads/file-head";
import { csvOf } from "../uploads/parts";
import { firstLines, type FileStart } from "../uploads/sample";
import type { KeyedPart } from "../uploads/send";
import { csvOfSample, inferSamples, withSamples, type Staged } from "../uploads/staging";
import { uploadKeyOf } from "../uploads/upload-key";
import { headersOfTable, ownFormats } from "./changes";
import { formatText, isDialect, itemOf, type Dialect } from "./dialect";

/** Files of one upload that get formats of their own. */
const FILES_MAX = 10;
/** Files of one upload whose headers are read to find their tables. */
const HEADERS_MAX = 64;

/** `odd`: has the table's columns, and the config reads none of them in it; `foreign`: has other columns only. */
type Fit = "reads" | "odd" | "foreign";

async function fitOf(file: File, place: string, mapping: StoredMapping): Promise<Fit> {
  const csv = csvOf(mapping, place);
  const dialect = isDialect(csv) ? csv : {};
  const start = itemOf(dialect, "header") === true ? await firstLines(file) : undefined;
  if (!start) return "reads";
  const line = start.lines[Number(itemOf(dialect, "skip_rows"))] ?? "";
  const [cells = []] = split(line, String(itemOf(dialect, "delimiter")), itemOf(dialect, "quote") as string | null);
  const headers = headersOfTable(mapping);
  const known = (names: readonly string[]) => names.filter((name) => headers.has(name.trim().toLowerCase())).length;
  const { header = [] } = readHead(start.lines);
  if (known(cells) > 0) return isOfOtherEncoding(start, dialect) ? "odd" : "reads";
  if (known(header) > 0) return known(header) * 2 >= header.length ? "odd" : "reads";
  return header.length > 1 && headers.size > 0 ? "foreign" : "reads";
}

/** The only table whose columns are those of the file's header; undefined if there is none, or several. */
async function tableByHeader(file: File, { mappings = [] }: StoredConfig): Promise<string | undefined> {
  const start = await firstLines(file);
  const { header = [] } = readHead(start?.lines ?? []);
  const fitting = mappings.filter((mapping) => {
    const known = headersOfTable(mapping);
    return known.size > 0 && known.size === header.length && header.every((name) => known.has(name));
  });
  const [one] = fitting;
  return fitting.length === 1 && typeof one?.table === "string" ? one.table : undefined;
}

/**
 * The tables that files belong to by their headers. Beyond `HEADERS_MAX` files, the others belong to the table of these
 * if all have the same. @throws ApiFailure
 */
export async function tablesByHeader(
  slug: string,
  files: readonly File[],
): Promise<ReadonlyMap<File, string | undefined>> {
  const { config } = await loadConfig(slug);
  const tables = await Promise.all(files.slice(0, HEADERS_MAX).map((file) => tableByHeader(file, config)));
  const common = new Set(tables).size === 1 ? tables[0] : undefined;
  return new Map(files.map((file, at) => [file, at < HEADERS_MAX ? tables[at] : common]));
}

/** Whether it would be read as other letters, or fail the run. */
function isOfOtherEncoding({ encoding, isOfAny }: FileStart, dialect: Dialect): boolean {
  const set = String(itemOf(dialect, "encoding")).toLowerCase();
  return !isOfAny && (encoding === "utf-8") !== (set === "utf-8");
}

/** Files that the config doesn't read as they are. */
interface Unfit {
  /** With the columns of the table in another format than the config reads them in. */
  odd: File[];
  /** With none of the columns of the table. */
  foreign: File[];
}

export async function unfitFiles(
  mapping: StoredMapping,
  globs: readonly string[],
  files: readonly File[],
): Promise<Unfit> {
  const fits = await Promise.all(files.map((file) => fitOf(file, uploadKeyOf(globs, file.name) ?? file.name, mapping)));
  const those = (fit: Fit) => files.filter((_, at) => fits[at] === fit);
  return { odd: those("odd").slice(0, FILES_MAX), foreign: those("foreign") };
}

/** The same by the saved config. @throws ApiFailure */
export async function unfitFilesOf(
  slug: string,
  table: string,
  globs: readonly string[],
  files: readonly File[],
): Promise<Unfit> {
  const { config } = await loadConfig(slug);
  const mapping = config.mappings?.find((one) => one.table === table);
  return mapping ? await unfitFiles(mapping, globs, files) : { odd: [], foreign: [] };
}

/** What is inferred, of the objects that samples stand for. */
export const withKeys = (inferred: Inferred, keysOf: (sample: string) => string[]): Inferred => ({
  ...inferred,
  files_read: inferred.files_read.flatMap((one) => keysOf(one.key).map((key) => ({ ...one, key }))),
  variants: (inferred.variants ?? []).map((one) => ({ ...one, keys: one.keys.flatMap(keysOf) })),
});

/** The formats of files, found by the service in samples of them. */
export class OwnFormats {
  private constructor(
    private readonly samples: readonly Staged[],
    private readonly inferred: Inferred,
  ) {}

  /** @throws ApiFailure */
  static async of(files: readonly File[]): Promise<OwnFormats | undefined> {
    if (files.length === 0) return undefined;
    return await withSamples(files, async (samples) => new OwnFormats(samples, await inferSamples(samples)));
  }

  /** The `csv` object for a file; undefined if it has no format of its own. */
  csvOf({ name }: Pick<File, "name">): unknown {
    const sample = this.samples.find((one) => one.name === name);
    return sample && csvOfSample(this.inferred, sample);
  }

  /** Whether it has the formats of these files, and of no others. */
  covers(files: readonly File[]): boolean {
    const names = this.samples.map(({ name }) => name).sort();
    return files.length > 0 && JSON.stringify(names) === JSON.stringify(files.map(({ name }) => name).sort());
  }

  /** `semicolon-separated, UTF-8, header in line 3, decimal comma`. */
  textOf(file: File): string {
    const csv = this.csvOf(file);
    const mark = this.samples.find(({ name }) => name === file.name)?.mark;
    return isDialect(csv) ? formatText(csv, [{ mark }]) : "";
  }

  /** The mapping with variants for the files that are sent as `parts`. */
  appliedTo(mapping: StoredMapping, slug: string, parts: readonly Pick<KeyedPart, "key" | "of">[]): StoredMapping {
    const prefix = `pipelines/${slug}/`;
    const sent = (key: string) => {
      const name = this.samples.find((one) => one.key === key)?.name;
      return parts.filter(({ of }) => of === name).map((part) => part.key);
    };
    const inferred = withKeys(this.inferred, sent);
    const misfits = parts.map(({ key }) => ({ file: key.slice(prefix.length), why: "" }));
    return ownFormats(mapping, inferred, misfits, prefix).reduce((made, change) => change.apply(made), mapping);
  }
}
