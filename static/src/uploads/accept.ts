/** Filters dropped or chosen files: keeps CSVs, extracts archives, and refuses others with advice. */
import { toast } from "../components/toasts";
import { counted } from "../format/number";
import { CSV_ENDINGS } from "../api/rules";
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
  const [first] = others;
  if (first) {
    const more = others.length > 1 ? `, and ${counted(others.length - 1, "more file")}` : "";
    toast.failed(csvs.length > 0 ? `Not added${more}` : `No files added${more}`, new Error(adviceFor(first.name)));
  }
  return csvs;
}
