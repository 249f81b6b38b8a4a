/** Where files go so that the globs of a table read them. */
import { leavesOut, matcher } from "./globs";
import { COMPRESSION_ENDINGS } from "../api/rules";
import { compressionOf, variantsOf, withoutCompression } from "./source-names";

const GLOB_CHARACTERS = /[*?[{]/;

/** The folder that a glob names before its first wildcard, ending with `/`, or `""`. */
function fixedFolder(glob: string): string {
  const segments = glob.split("/").slice(0, -1);
  const wild = segments.findIndex((segment) => GLOB_CHARACTERS.test(segment));
  const fixed = wild < 0 ? segments : segments.slice(0, wild);
  return fixed.map((segment) => `${segment}/`).join("");
}

/** The key of a file below the pipeline's folder, so that one of the globs reads it; undefined if none does. */
export function uploadKeyOf(globs: readonly string[], name: string): string | undefined {
  const isRead = matcher(globs);
  for (const glob of globs.filter((one) => !leavesOut(one))) {
    const key = fixedFolder(glob) + name;
    if (matcher([glob])(key) && isRead(key)) return key;
  }
  return undefined;
}

/** Globs to add to a table so that it reads a file of this name, in a folder of its own. */
export const globsToAdd = (table: string, name: string): string[] =>
  variantsOf(name).map((ending) => `${table}/*${ending}`);

/** Whether the globs read compressed files of this name, too. */
export const readsCompressed = (globs: readonly string[], name: string): boolean =>
  compressionOf(name) === undefined && uploadKeyOf(globs, `${name}${COMPRESSION_ENDINGS[0]}`) !== undefined;

const wordsOf = (text: string): string[] =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word.length > 1);

/** The table that a file of this name probably belongs to: it shares most words of its name with it. */
export function likelyTable<T extends { name: string; globs: string[] }>(
  tables: readonly T[],
  name: string,
): T | undefined {
  const reading = tables.filter(({ globs }) => uploadKeyOf(globs, name) !== undefined);
  if (reading.length <= 1) return reading[0] ?? (tables.length === 1 ? tables[0] : undefined);
  const words = new Set(wordsOf(withoutCompression(name)));
  const shared = (table: T) => wordsOf(table.name).filter((word) => words.has(word)).length;
  const best = Math.max(...reading.map(shared));
  const found = reading.filter((table) => shared(table) === best);
  return best > 0 && found.length === 1 ? found[0] : undefined;
}
