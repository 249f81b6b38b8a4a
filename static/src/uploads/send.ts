/** Uploads files to where a table reads them. */
import { uploads } from ".";
import { inPipeline, joinKey } from "./keys";
import { partsOf, type Part, type RecordShape } from "./parts";
import { uploadKeyOf, readsCompressed } from "./upload-key";
import type { Batch } from "./queue";

/** A part with its key. */
export interface KeyedPart extends Part {
  key: string;
  /** Name of the file that it is a part of. */
  of: string;
  /** Whether the object with its key is replaced; otherwise people are asked if there is one. */
  replace?: boolean;
}

/**
 * Splits large files into parts, and gives each part a key that the globs match. `places`: keys of stored files that
 * files replace. @throws Error with advice
 */
export async function partsToUpload(
  slug: string,
  globs: readonly string[],
  files: readonly File[],
  shapeOfFile: (file: File) => RecordShape,
  places: ReadonlyMap<File, string> = new Map(),
): Promise<KeyedPart[]> {
  const found: KeyedPart[] = [];
  const taken = new Set<string>();
  for (const file of files) {
    const key = places.get(file);
    if (key !== undefined) {
      taken.add(inPipeline(slug, key));
      found.push({ name: file.name, body: file, pack: false, key, of: file.name, replace: true });
      continue;
    }
    for (const part of await partsOf(file, shapeOfFile(file), readsCompressed(globs, file.name))) {
      const free = freeName(part.name, (name) => taken.has(uploadKeyOf(globs, name) ?? ""));
      const place = uploadKeyOf(globs, free);
      if (place === undefined) throw new Error(`no pattern of the table reads ${free}: ${globs.join(", ")}`);
      taken.add(place);
      found.push({ ...part, name: free, key: joinKey(`pipelines/${slug}/`, place), of: file.name });
    }
  }
  return found;
}

/** The name, or with a number appended if it is taken. */
function freeName(given: string, isTaken: (name: string) => boolean): string {
  const [, stem = given, ending = ""] = /^(.*?)((?:\.[a-z0-9]{1,4}){0,2})$/i.exec(given) ?? [];
  let name = given;
  for (let suffix = 2; isTaken(name); suffix += 1) name = `${stem}-${suffix}${ending}`;
  return name;
}

export const sendParts = (parts: readonly KeyedPart[], replace?: boolean): Batch =>
  uploads.add(
    parts.map(({ key, body, pack, replace: own }) => ({ key, file: body, pack, replace: own ?? false })),
    replace,
  );
