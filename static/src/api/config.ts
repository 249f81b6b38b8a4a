/** Changes of a pipeline's stored config. */
import { sendRaw } from "./client";
import { client, configQuery, keys } from "./queries";

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
  config: StoredConfig;
  etag: string | null;
}

/** The config as it is stored now. @throws ApiFailure */
export async function loadConfig(slug: string): Promise<Loaded> {
  const { text, etag } = await client.fetchQuery({ ...configQuery(slug), staleTime: 0 });
  return { config: JSON.parse(text) as StoredConfig, etag };
}

/** Stores a valid config, unless the stored one is no longer that of `etag`. @throws ApiFailure */
export const saveConfig = (slug: string, config: unknown, etag: string | null): Promise<void> =>
  saveText(slug, JSON.stringify(config, null, 2), etag);

async function saveText(slug: string, body: string, etag: string | null): Promise<void> {
  await sendRaw(`/api/p/${encodeURIComponent(slug)}/config?strict=1`, {
    method: "PUT",
    body,
    headers: { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) },
  });
  void client.invalidateQueries({ queryKey: keys.pipeline(slug) });
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/** Where the value of a member of the outermost object begins and ends, if it is neither object nor list. */
function memberOf(text: string, name: string): { from: number; to: number } | undefined {
  const tokens = [...text.matchAll(TOKEN)];
  let depth = 0;
  for (const [at, { 0: token }] of tokens.entries()) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (depth === 1 && token.startsWith('"') && tokens[at + 1]?.[0] === ":" && JSON.parse(token) === name) {
      const value = tokens[at + 2];
      return value && !/[{[]/.test(value[0][0] ?? "")
        ? { from: value.index, to: value.index + value[0].length }
        : undefined;
    }
  }
  return undefined;
}

/** The text of a config with another title; the rest of it stays as it is written. */
export function withTitle(text: string, title: string): string {
  const value = JSON.stringify(title);
  const own = memberOf(text, "title");
  if (own) return text.slice(0, own.from) + value + text.slice(own.to);
  const after = memberOf(text, "version");
  if (after) return `${text.slice(0, after.to)},\n  "title": ${value}${text.slice(after.to)}`;
  return JSON.stringify({ ...(JSON.parse(text) as object), title }, null, 2);
}

/** Changes the title in the stored config. @throws ApiFailure */
export async function saveTitle(slug: string, title: string): Promise<void> {
  const { text, etag } = await client.fetchQuery({ ...configQuery(slug), staleTime: 0 });
  await saveText(slug, withTitle(text, title), etag);
  await client.invalidateQueries({ queryKey: keys.pipelines });
}
