/** Requests of the config view. */
import { keepPreviousData, queryOptions } from "@tanstack/preact-query";
import { api, ask, sendRaw } from "../../api/client";
import type { LakeFile, Previewed } from "../../api/types";
import { walk } from "../../api/walk";
import type { Stored } from "./draft";

const JSON_TYPE = "application/json";
/** Limits of the file listing. */
const LEVELS_MAX = 100;
const FILES_MAX = 5_000;
const PREVIEW_ROWS = 50;

/** JSON Schema of configs; changes only with the service's version. */
export const schemaQuery = () =>
  queryOptions({
    queryKey: ["schemas", "pipeline"],
    queryFn: async ({ signal }) => (await (await sendRaw("/schemas/pipeline.json", { signal })).json()) as unknown,
    staleTime: Infinity,
  });

export interface PipelineFile extends LakeFile {
  /** Relative to the pipeline's folder. */
  name: string;
}

export interface PipelineFiles {
  files: PipelineFile[];
  /** The listing was cut off. */
  more: boolean;
}

export const prefixOf = (slug: string): string => `pipelines/${slug}/`;

async function listed(slug: string, signal: AbortSignal): Promise<PipelineFiles> {
  const prefix = prefixOf(slug);
  const { files, whole } = await walk([prefix], { files: FILES_MAX, asks: LEVELS_MAX, signal });
  return { files: files.map((file) => ({ ...file, name: file.key.slice(prefix.length) })), more: !whole };
}

/** The pipeline's files in the lake, in all folders. */
export const filesQuery = (slug: string) =>
  queryOptions({
    queryKey: ["lake", prefixOf(slug), "all"],
    queryFn: ({ signal }) => listed(slug, signal),
    staleTime: 10_000,
  });

const pathOf = (slug: string, query: string): string => `/api/p/${encodeURIComponent(slug)}/config${query}`;

/**
 * Stores a config on top of `base`. `strict`: refuses problems. `restores`: the version that it has the text of. @throws ApiFailure 412: the stored config changed.
 */
export async function save(
  slug: string,
  text: string,
  base: Stored,
  { strict, restores }: { strict: boolean; restores: number | undefined },
): Promise<Stored> {
  const query = new URLSearchParams({
    ...(strict ? { strict: "1" } : {}),
    ...(restores ? { restores: String(restores) } : {}),
  });
  const condition = base.etag ? { "If-Match": base.etag } : base.text === "" ? { "If-None-Match": "*" } : {};
  const headers = { "Content-Type": JSON_TYPE, ...condition };
  const response = await sendRaw(pathOf(slug, `?${query}`), { method: "PUT", body: text, headers });
  return { text, etag: response.headers.get("ETag") };
}

export async function stored(slug: string): Promise<Stored> {
  const response = await sendRaw(pathOf(slug, ""));
  return { text: await response.text(), etag: response.headers.get("ETag") };
}

/** Page size of the history, and the most versions that it has. */
export const VERSIONS_PAGE = 50;
export const VERSIONS_MAX = 500;

/** The configs that the pipeline had, newest first. */
export const versionsQuery = (slug: string, limit: number) =>
  queryOptions({
    queryKey: ["p", slug, "config-versions", limit],
    queryFn: ({ signal }) => {
      const params = { path: { pipeline: slug }, query: { limit } };
      return ask(api.GET("/api/p/{pipeline}/config/versions", { params, signal }));
    },
    staleTime: 0,
  });

/** The text of a version; `unkept` for the stored config that has none, or for nothing. */
export const versionTextQuery = (slug: string, version: number | null | undefined, unkept: string) =>
  queryOptions({
    queryKey: ["p", slug, "config-version", version ?? unkept],
    queryFn: async ({ signal }) =>
      version ? (await sendRaw(pathOf(slug, `/versions/${version}`), { signal })).text() : unkept,
    staleTime: Infinity,
  });

/** Preview of a file with a config; `text` is JSON. */
export const previewQuery = (slug: string, text: string, table: string | undefined, key: string | undefined) =>
  queryOptions({
    queryKey: ["p", slug, "preview", table, key, text],
    queryFn: async ({ signal }): Promise<Previewed> => {
      const config = JSON.parse(text) as unknown;
      const body = { config, limit: PREVIEW_ROWS, ...(table ? { table } : {}), ...(key ? { key } : {}) };
      return ask(api.POST("/api/p/{pipeline}/preview", { params: { path: { pipeline: slug } }, body, signal }));
    },
    staleTime: Infinity,
    gcTime: 10_000,
    retry: false,
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  });
