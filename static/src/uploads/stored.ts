/** Stored files that new files would replace, or may be corrected versions of. */
import { api, ask, sendRaw } from "../api/client";
import type { LakeFile } from "../api/types";
import { matcher } from "./globs";
import { folderOf, joinKey, nameOf } from "./keys";
import { compressionOf } from "./source-names";
import { uploadKeyOf } from "./upload-key";
import { differInPeriod, isVersionName, sameRows } from "./versions";

/** What a new file may take the place of. */
export interface Target {
  name: string;
  /** Objects in the lake: several parts of a large file; none if it is another of the new files. */
  stored: LakeFile[];
  /** The other new file. */
  other?: File;
}

/** `same`: the name exists; `version`: the name is alike; `rows`: header and rows, or period, are alike; `other`: of a table. */
export interface Match {
  file: File;
  kind: "same" | "version" | "rows" | "other";
  /** Another table, which has the file. */
  table?: string;
  targets: Target[];
  /** The stored file that has the same bytes, if one is known to. */
  identical?: string;
}

const PAGE = 1_000;
/** Pages of a folder that are listed. */
const PAGES_MAX = 10;
/** Bytes that are compared, of so many new and stored files. */
const HEAD_BYTES = 16 << 10;
const NEW_HEADS_MAX = 5;
const STORED_HEADS_MAX = 40;
/** Bytes of stored files that are compared whole. */
const COMPARED_BYTES_MAX = 64 << 20;

async function filesOf(folder: string): Promise<LakeFile[]> {
  const files: LakeFile[] = [];
  let after: string | null = "";
  for (let page = 0; page < PAGES_MAX && after !== null; page += 1) {
    const query: { prefix: string; limit: number; after?: string } = { prefix: folder, limit: PAGE };
    if (after !== "") query.after = after;
    const level = await ask(api.GET("/api/lake", { params: { query } }));
    files.push(...level.files);
    after = level.next;
  }
  return files;
}

/** Objects by the files that they are, or are parts of. */
function targetsOf(stored: readonly LakeFile[]): Target[] {
  const groups = new Map<string, LakeFile[]>();
  for (const one of stored) {
    const whole = one.key.replace(/-part-\d{3,}(\.[^/]*)$/, "$1");
    groups.set(whole, [...(groups.get(whole) ?? []), one]);
  }
  return [...groups].map(([whole, objects]) => ({ name: nameOf(whole), stored: objects }));
}

const latin1 = (bytes: ArrayBuffer): string => new TextDecoder("latin1").decode(bytes);

async function headsOf(targets: readonly Target[]): Promise<{ text: string; target: Target }[]> {
  const plain = targets.filter(({ stored, name }) => stored.length === 1 && compressionOf(name) === undefined);
  const newest = plain
    .sort((a, b) => (b.stored[0]?.modified ?? "").localeCompare(a.stored[0]?.modified ?? ""))
    .slice(0, STORED_HEADS_MAX);
  return await Promise.all(
    newest.map(async (target) => {
      const key = encodeURIComponent(target.stored[0]?.key ?? "");
      const answer = await sendRaw(`/api/lake/object?key=${key}&head=${HEAD_BYTES}`);
      return { target, text: latin1(await answer.arrayBuffer()) };
    }),
  );
}

/** Whether a stored file has the bytes of a new one. @throws ApiFailure */
async function hasBytesOf(file: File, { key }: LakeFile): Promise<boolean> {
  const answer = await sendRaw(`/api/lake/object?key=${encodeURIComponent(key)}`);
  return areEqual(await file.arrayBuffer(), await answer.arrayBuffer());
}

/** Compares four bytes at a time, so that the largest files don't hold up the page. */
export function areEqual(one: ArrayBuffer, other: ArrayBuffer): boolean {
  if (one.byteLength !== other.byteLength) return false;
  const words = one.byteLength >> 2;
  const [ours, theirs] = [new Uint32Array(one, 0, words), new Uint32Array(other, 0, words)];
  for (let at = 0; at < words; at += 1) if (ours[at] !== theirs[at]) return false;
  const rest = new Uint8Array(other, 4 * words);
  return new Uint8Array(one, 4 * words).every((byte, at) => byte === rest[at]);
}

/** The new files that stored files, also of other tables, or other new ones are like. @throws ApiFailure */
export async function matchesOf(
  slug: string,
  globs: readonly string[],
  files: readonly File[],
  others: readonly { name: string; globs: string[] }[] = [],
): Promise<Match[]> {
  const matches = await alikeOf(slug, globs, files);
  let left = COMPARED_BYTES_MAX;
  for (const match of matches) {
    const { file, targets } = match;
    const alike = targets.find(({ stored }) => stored.length === 1 && stored[0]?.size === file.size);
    if (!alike?.stored[0] || file.size > left) continue;
    left -= file.size;
    if (await hasBytesOf(file, alike.stored[0])) match.identical = alike.name;
  }
  const root = `pipelines/${slug}/`;
  const listings = new Map<string, Promise<LakeFile[]>>();
  for (const file of files.filter((one) => !matches.some((match) => match.file === one)))
    for (const { name, globs } of others) {
      const key = root + (uploadKeyOf(globs, file.name) ?? "/");
      const folder = folderOf(key);
      if (!listings.has(folder)) listings.set(folder, filesOf(folder));
      const stored = (await listings.get(folder))?.find((one) => one.key === key && one.size === file.size);
      if (!stored) continue;
      // Beyond what is compared, name and size have to do.
      left -= file.size;
      if (left >= 0 && !(await hasBytesOf(file, stored))) continue;
      matches.push({ file, kind: "other", table: name, targets: [], identical: file.name });
      break;
    }
  return matches;
}

async function alikeOf(slug: string, globs: readonly string[], files: readonly File[]): Promise<Match[]> {
  const root = `pipelines/${slug}/`;
  const placed = files.flatMap((file) => {
    const place = uploadKeyOf(globs, file.name);
    return place === undefined ? [] : [{ file, key: joinKey(root, place) }];
  });
  const isRead = matcher(globs);
  const folders = [...new Set(placed.map(({ key }) => folderOf(key)))];
  const stored = (await Promise.all(folders.map(filesOf))).flat().filter(({ key }) => isRead(key.slice(root.length)));
  const byKey = new Map(stored.map((one) => [one.key, one]));
  const targets = targetsOf(stored);
  const matches: Match[] = [];
  const unmatched: File[] = [];
  placed.forEach(({ file, key }, at) => {
    const same = byKey.get(key);
    if (same) return matches.push({ file, kind: "same", targets: [{ name: file.name, stored: [same] }] });
    const alike = targets.filter(({ name }) => isVersionName(file.name, name));
    // Of two new files, the one with the longer name is asked about.
    const others = placed.filter(
      ({ file: other }, nth) =>
        isVersionName(file.name, other.name) &&
        (file.name.length > other.name.length || (file.name.length === other.name.length && at > nth)),
    );
    const found = [...alike, ...others.map(({ file: other }) => ({ name: other.name, stored: [], other }))];
    if (found.length > 0) return matches.push({ file, kind: "version", targets: found });
    return unmatched.push(file);
  });
  const read = unmatched.filter(({ name }) => compressionOf(name) === undefined).slice(0, NEW_HEADS_MAX);
  if (read.length === 0 || targets.length === 0 || unmatched.length > NEW_HEADS_MAX) return matches;
  const heads = await headsOf(targets);
  for (const file of read) {
    const candidates = heads.filter(({ target }) => !differInPeriod(file.name, target.name));
    const found = sameRows(latin1(await file.slice(0, HEAD_BYTES).arrayBuffer()), candidates);
    if (found) matches.push({ file, kind: "rows", targets: [found.target] });
  }
  return matches;
}

/** What becomes of a matched file if nobody chooses. */
export const defaultChoice = ({ kind, identical }: Match): Choice =>
  kind === "other" ? "add" : identical !== undefined ? "skip" : kind === "same" ? 0 : undefined;

/** What to do with a matched file: the number of the target to replace, or neither; undefined: not chosen yet. */
export type Choice = number | "add" | "skip" | undefined;

export interface Resolved {
  /** Files to upload. */
  files: File[];
  /** Keys of stored files that files are stored under. */
  places: ReadonlyMap<File, string>;
  /** Objects to delete after the upload. */
  deleted: string[];
}

/** What is uploaded, replaced and deleted by choices. `sizeMax`: larger files are cut, so they have keys of their own. */
export function resolved(
  files: readonly File[],
  matches: readonly Match[],
  choiceOf: (match: Match) => Choice,
  sizeMax: number,
): Resolved {
  const left = new Set(files);
  const places = new Map<File, string>();
  const deleted: string[] = [];
  for (const match of matches) {
    const choice = choiceOf(match);
    const { file, targets } = match;
    if (choice === "skip") left.delete(file);
    const target = typeof choice === "number" ? targets[choice] : undefined;
    if (!target) continue;
    if (target.other) left.delete(target.other);
    const [object, ...parts] = target.stored;
    const fits = compressionOf(file.name) === compressionOf(target.name) && file.size <= sizeMax;
    if (object && parts.length === 0 && fits) places.set(file, object.key);
    else deleted.push(...target.stored.map(({ key }) => key));
  }
  return { files: [...left], places, deleted };
}
