/** Validates lake keys like the service, before anything is sent. */

/** The service's upload limit, in bytes. */
export const UPLOAD_BYTES_MAX = 104_857_600;
const CONFIG = "pipeline.json";
const KEY_BYTES_MAX = 1_024;
// Control characters and bidirectional formatting characters.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

const encoder = new TextEncoder();

/** Why a key is invalid; undefined if valid. */
export function keyProblem(text: string): string | undefined {
  const key = text.normalize("NFC");
  if (key === "") return "the name is empty";
  if (encoder.encode(key).length > KEY_BYTES_MAX) return "folder and name together are longer than 1,024 bytes";
  if (key.includes("\\")) return "the name contains a backslash";
  if (UNSEEN.test(key)) return "the name contains a control or bidirectional formatting character";
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

/** Folder of a key, ending with `/`, or `""`. */
export function folderOf(key: string): string {
  const plain = key.endsWith("/") ? key.slice(0, -1) : key;
  return plain.slice(0, plain.lastIndexOf("/") + 1);
}

/** Slug of the pipeline that a key belongs to. */
export function pipelineOf(key: string): string | undefined {
  return /^pipelines\/([a-z0-9][a-z0-9_-]{0,62})\/./.exec(key)?.[1];
}

/** Contains only folders of pipelines. */
export const PIPELINES = "pipelines/";

/**
 * Folder below `pipelines/` of the first key outside the given pipelines; `""` if it has no folder. Keys with their
 * own `pipeline.json` are allowed.
 */
export function strayOf(keys: readonly string[], slugs: ReadonlySet<string>): string | undefined {
  const brought = keys.filter((key) => pipelineOf(key) !== undefined && key.split("/").slice(2).join("/") === CONFIG);
  const known = new Set([...slugs, ...brought.map(pipelineOf)]);
  const stray = keys.find((key) => key.startsWith(PIPELINES) && !known.has(pipelineOf(key)));
  return stray === undefined ? undefined : (/^pipelines\/([^/]*)\//.exec(stray)?.[1] ?? "");
}

/** Whether a new file with this key starts a run. */
export const isCsv = (key: string): boolean => /\.csv(\.gz|\.zst)?$/i.test(key);
