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
export async function saveConfig(slug: string, config: unknown, etag: string | null): Promise<void> {
  await sendRaw(`/api/p/${encodeURIComponent(slug)}/config?strict=1`, {
    method: "PUT",
    body: JSON.stringify(config, null, 2),
    headers: { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) },
  });
  void client.invalidateQueries({ queryKey: keys.pipeline(slug) });
}
