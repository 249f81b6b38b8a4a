/** Filters dropped or chosen files: keeps CSVs, extracts archives, and refuses others with advice. */
import { toast } from "../components/toasts";
import { counted } from "../format/number";
import { CSV_ENDINGS } from "../api/rules";
import { contentProblem } from "./contents";
import { skippedMessage, type CollectedFiles } from "./files";
import { isSource } from "./source-names";

const SPREADSHEET = /\.(xlsx?|xlsm|xlsb|ods|numbers)$/i;
const ARCHIVE = /\.zip$/i;

/** Files with a CSV extension. */
export const csvsOf = (files: readonly File[]): File[] =>
  files.filter((file) => isSource(file.name) || file.type === "text/csv");

/** Names of texts that come with data and aren't data; in an archive with their folder in front. */
const DOCUMENT = /(^|-)(readme|read[ _-]me|licen[cs]e|copying|changelog|authors|contributors)([ ._-].*)?$/i;

/** The CSVs among files, without a readme or licence unless there is nothing else. */
export function dataOf(files: readonly File[]): { csvs: File[]; documents: File[] } {
  const csvs = csvsOf(files);
  const documents = csvs.filter(({ name }) => DOCUMENT.test(name) && !/\.(csv|tsv)/i.test(name));
  if (documents.length === csvs.length) return { csvs, documents: [] };
  return { csvs: csvs.filter((file) => !documents.includes(file)), documents };
}

const namesOf = (files: File[]): string => files.map(({ name }) => name).join(", ");

/** Advice for a file that isn't a CSV. */
export function adviceFor(name: string): string {
  if (SPREADSHEET.test(name))
    return `${name} is a spreadsheet. In Excel or another spreadsheet program, save each sheet as “CSV UTF-8”, then drop the CSVs`;
  if (/\.(7z|rar|tar|tgz|bz2|xz)$/i.test(name)) return `${name} is an archive. Extract it, then drop the CSVs`;
  if (/\.(parquet|json|jsonl|ndjson|xml|pdf)$/i.test(name)) return `${name} isn't a CSV. Export the data as CSV first`;
  return `${name} isn't a CSV; Lakemill reads ${CSV_ENDINGS.join(", ")} and other delimited text`;
}

/** Files whose first bytes are read at the same time. */
const READ_AT_ONCE = 64;

/** The files without those that are something else by their first bytes, whatever their names say, and what these are. */
export async function withoutForeign<T>(
  all: readonly T[],
  /** The file to look at; undefined: it isn't meant to be a CSV. */
  fileOf: (one: T) => File | undefined,
): Promise<{ kept: T[]; problems: string[] }> {
  const kept: T[] = [];
  const problems: string[] = [];
  for (let at = 0; at < all.length; at += READ_AT_ONCE) {
    const some = all.slice(at, at + READ_AT_ONCE);
    const found = await Promise.all(
      some.map(async (one) => {
        const file = fileOf(one);
        return file && (await contentProblem(file));
      }),
    );
    some.forEach((one, nth) => {
      const problem = found[nth];
      if (problem === undefined) kept.push(one);
      else problems.push(problem);
    });
  }
  return { kept, problems };
}

/** Files that a message names. */
const NAMED_MAX = 3;

/** Says why files aren't added. `some`: others are. */
export function reportRefused(problems: readonly string[], some: boolean): void {
  if (problems.length === 0) return;
  const more = problems.length - NAMED_MAX;
  const text = [...problems.slice(0, NAMED_MAX), ...(more > 0 ? [`And ${counted(more, "more file")}`] : [])].join(". ");
  toast.failed(some ? "Not added" : "No files added", new Error(text));
}

/** The CSVs of a drop or choice, with those in zip archives; reports the others. */
export async function take(taken: CollectedFiles): Promise<File[]> {
  const left = skippedMessage(taken);
  if (left !== undefined) toast.failed("Some files weren't added", new Error(left));
  const found: File[] = [];
  for (const { file } of taken.found) {
    if (!ARCHIVE.test(file.name)) {
      found.push(file);
      continue;
    }
    try {
      const { unzipped } = await import("./unzip");
      const { csvs: inside, documents } = dataOf(await unzipped(file));
      if (inside.length === 0) throw new Error("it contains no CSVs");
      found.push(...inside);
      const without = documents.length > 0 ? `, without ${namesOf(documents)}` : "";
      toast.done(`${file.name}: ${counted(inside.length, "CSV")}${without}`);
    } catch (error) {
      toast.failed(`Couldn't open ${file.name}`, error);
    }
  }
  const { csvs, documents } = dataOf(found);
  if (documents.length > 0) toast.done(`Not added, since not data: ${namesOf(documents)}`);
  const others = found.filter((file) => !csvs.includes(file) && !documents.includes(file));
  const { kept, problems } = await withoutForeign(csvs, (file) => file);
  // A single one is taken, and where it goes says why it isn't sent.
  const filled = kept.filter(({ size }) => size > 0);
  const empty = filled.length > 0 ? kept.filter(({ size }) => size === 0) : [];
  const unfilled = empty.map(({ name }) => `${name} is empty`);
  reportRefused([...problems, ...unfilled, ...others.map(({ name }) => adviceFor(name))], kept.length > 0);
  return filled.length > 0 ? filled : kept;
}
