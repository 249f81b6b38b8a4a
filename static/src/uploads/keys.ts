/** Validates lake keys like the service, before anything is sent. */

import { CONFIG_FILE, KEY_BYTES_MAX, KEY_FORBIDDEN } from "../api/rules";
import { slugFault } from "../format/slug";
import { count } from "../format/number";

const encoder = new TextEncoder();

/** Why a key is invalid; undefined if valid. */
export function keyProblem(text: string): string | undefined {
  const key = text.normalize("NFC");
  if (key === "") return "the name is empty";
  if (encoder.encode(key).length > KEY_BYTES_MAX)
    return `folder and name together are longer than ${count(KEY_BYTES_MAX)} bytes`;
  if (key.includes("\\")) return "the name contains a backslash";
  if (KEY_FORBIDDEN.test(key)) return "the name contains a control or bidirectional formatting character";
  if (key.startsWith("/")) return "the name starts with `/`";
  if (key.endsWith("/")) return "the name ends with `/`";
  const segments = key.split("/");
  if (segments.includes("")) return "the name contains an empty segment (`//`)";
  if (segments.includes(".") || segments.includes("..")) return "the name contains a `.` or `..` segment";
  return undefined;
}

/** Joins a folder (`""` is the root) and a path. */
export function joinKey(prefix: string, path: string): string {
  const folder = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  return (folder + path.replace(/^\/+/, "")).normalize("NFC");
}

/** Last segment of a key or prefix. */
export function nameOf(key: string): string {
  const plain = key.endsWith("/") ? key.slice(0, -1) : key;
  return plain.slice(plain.lastIndexOf("/") + 1);
}

const NAMES_MAX = 2;

/** The first names, and the number of others: `a.csv, b.csv and 3 more`. */
export function namesOf(keys: readonly string[]): string {
  const names = keys.slice(0, NAMES_MAX).map(nameOf).join(", ");
  const more = keys.length - NAMES_MAX;
  return more > 0 ? `${names} and ${count(more)} more` : names;
}

/** Folder of a key, ending with `/`, or `""`. */
export function folderOf(key: string): string {
  const plain = key.endsWith("/") ? key.slice(0, -1) : key;
  return plain.slice(0, plain.lastIndexOf("/") + 1);
}

/** Slug of the pipeline that a key belongs to. */
export function pipelineOf(key: string): string | undefined {
  const slug = /^pipelines\/([^/]+)\/./.exec(key)?.[1];
  return slug !== undefined && slugFault(slug) === undefined ? slug : undefined;
}

/** Contains only folders of pipelines. */
export const PIPELINES = "pipelines/";

/** A key of a pipeline, relative to its folder. */
export const inPipeline = (slug: string, key: string): string => key.slice(PIPELINES.length + slug.length + 1);

/**
 * Folder below `pipelines/` of the first key outside the given pipelines; `""` if it has no folder. Keys with their
 * own `pipeline.json` are allowed.
 */
export function strayOf(keys: readonly string[], slugs: ReadonlySet<string>): string | undefined {
  const brought = keys.filter(
    (key) => pipelineOf(key) !== undefined && key.split("/").slice(2).join("/") === CONFIG_FILE,
  );
  const known = new Set([...slugs, ...brought.map(pipelineOf)]);
  const stray = keys.find((key) => key.startsWith(PIPELINES) && !known.has(pipelineOf(key)));
  return stray === undefined ? undefined : (/^pipelines\/([^/]*)\//.exec(stray)?.[1] ?? "");
}
