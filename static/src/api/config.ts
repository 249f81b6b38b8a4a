/** Changes of a pipeline's stored config. */
import { sendRaw } from "./client";
import { client, keys, storedConfig } from "./queries";
import type { ConfigSaved } from "./types";

export interface StoredMapping {
  table?: unknown;
  files?: unknown;
  csv?: unknown;
  columns?: unknown;
  [member: string]: unknown;
}

export interface StoredConfig {
  mappings?: StoredMapping[];
  [member: string]: unknown;
}

export interface Loaded {
  text: string;
  config: StoredConfig;
  etag: string | null;
}

/** The config as it is stored now. @throws ApiFailure */
export async function loadConfig(slug: string): Promise<Loaded> {
  const { text, etag } = await storedConfig(slug, false);
  return { text, config: JSON.parse(text) as StoredConfig, etag };
}

/** Stores a valid config, unless the stored one is no longer that of `etag`. @throws ApiFailure */
export const saveConfig = (slug: string, config: unknown, etag: string | null): Promise<void> =>
  saveText(slug, JSON.stringify(config, null, 2), etag);

/** The same for its text. @throws ApiFailure */
export async function saveText(slug: string, body: string, etag: string | null): Promise<void> {
  await sendRaw(`/api/p/${encodeURIComponent(slug)}/config?strict=1`, {
    method: "PUT",
    body,
    headers: { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) },
  });
  void client.invalidateQueries({ queryKey: keys.pipeline(slug) });
}

/** Validates a config without storing it. */
export async function checkConfig(slug: string, text: string, signal?: AbortSignal): Promise<ConfigSaved> {
  const init = { method: "PUT", body: text, headers: { "Content-Type": "application/json" } };
  const path = `/api/p/${encodeURIComponent(slug)}/config?dry_run=1`;
  return (await (await sendRaw(path, signal ? { ...init, signal } : init)).json()) as ConfigSaved;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/** Where the value at a path begins and ends; undefined if there is none. */
export function spanOf(text: string, path: readonly (string | number)[]): { from: number; to: number } | undefined {
  const tokens = [...text.matchAll(TOKEN)];
  let at = 0;
  const skipValue = () => {
    let depth = 0;
    do {
      const token = tokens[at]?.[0];
      if (token === "{" || token === "[") depth += 1;
      else if (token === "}" || token === "]") depth -= 1;
      at += 1;
    } while (depth > 0 && at < tokens.length);
  };
  for (const step of path) {
    const isList = typeof step === "number";
    if (tokens[at]?.[0] !== (isList ? "[" : "{")) return undefined;
    at += 1;
    for (let index = 0; ; index += 1) {
      const token = tokens[at]?.[0];
      if (token === undefined || token === "}" || token === "]") return undefined;
      if (!isList) at += 2;
      if (isList ? index === step : JSON.parse(token) === step) break;
      skipValue();
      if (tokens[at]?.[0] === ",") at += 1;
    }
  }
  const from = tokens[at]?.index;
  skipValue();
  const last = tokens[at - 1];
  return from === undefined || !last ? undefined : { from, to: last.index + last[0].length };
}

/** The text of a config with another title; the rest of it stays as it is written. */
export function withTitle(text: string, title: string): string {
  const value = JSON.stringify(title);
  const own = spanOf(text, ["title"]);
  if (own) return text.slice(0, own.from) + value + text.slice(own.to);
  const after = spanOf(text, ["version"]);
  if (after) return `${text.slice(0, after.to)},\n  "title": ${value}${text.slice(after.to)}`;
  return JSON.stringify({ ...(JSON.parse(text) as object), title }, null, 2);
}

/** Changes the title in the stored config. @throws ApiFailure */
export async function saveTitle(slug: string, title: string): Promise<void> {
  const { text, etag } = await storedConfig(slug, false);
  await saveText(slug, withTitle(text, title), etag);
  await client.invalidateQueries({ queryKey: keys.pipelines });
}
