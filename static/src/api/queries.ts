/** What is asked of the service, each with its key in the cache. Views share these, so that one answer serves all. */
import { QueryClient, queryOptions } from "@tanstack/preact-query";
import { api, ask, sendRaw } from "./client";
import { connection } from "./connection";
import { isDraft } from "./drafts";
import { asFailure } from "./failure";
import type { Job, Ready } from "./types";

/** While something moves, it is asked for this often, in milliseconds; a job's own record changes once a second. */
export const LIVE_MS = 1_000;
/** While nothing does. */
export const CALM_MS = 5_000;
const RETRIES = 2;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (count, error) => count < RETRIES && asFailure(error).passing,
      refetchOnWindowFocus: true,
      throwOnError: false,
    },
    mutations: { retry: false },
  },
});

connection.onRecovered(() => void client.invalidateQueries());

export const keys = {
  pipelines: ["pipelines"] as const,
  settings: ["settings"] as const,
  about: ["about"] as const,
  ready: ["ready"] as const,
  pipeline: (slug: string) => ["p", slug] as const,
  jobs: (slug: string) => ["p", slug, "jobs"] as const,
  job: (slug: string, id: string) => ["p", slug, "jobs", id] as const,
  tables: (slug: string) => ["p", slug, "tables"] as const,
  config: (slug: string) => ["p", slug, "config"] as const,
  dashboards: (slug: string) => ["p", slug, "dashboards"] as const,
  saved: (slug: string) => ["p", slug, "queries"] as const,
  lake: (prefix: string) => ["lake", prefix] as const,
};

export const isActive = (job: Job): boolean => job.status === "queued" || job.status === "running";

export const pipelinesQuery = () =>
  queryOptions({
    queryKey: keys.pipelines,
    queryFn: ({ signal }) => ask(api.GET("/api/pipelines", { params: { query: { details: true } }, signal })),
    select: (listed) =>
      Array.isArray(listed)
        ? { pipelines: [], truncated: false }
        : { ...listed, pipelines: listed.pipelines.filter(({ slug }) => !isDraft(slug)) },
    refetchInterval: CALM_MS,
  });

export const settingsQuery = () =>
  queryOptions({ queryKey: keys.settings, queryFn: ({ signal }) => ask(api.GET("/api/settings", { signal })) });

/** The newest jobs: often while one is active. */
export const jobsQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.jobs(pipeline),
    queryFn: ({ signal }) =>
      ask(api.GET("/api/p/{pipeline}/jobs", { params: { path: { pipeline }, query: { limit: 50 } }, signal })),
    refetchInterval: (query) => (query.state.data?.jobs.some(isActive) ? LIVE_MS : CALM_MS),
  });

export const jobQuery = (pipeline: string, id: string) =>
  queryOptions({
    queryKey: keys.job(pipeline, id),
    queryFn: ({ signal }) =>
      ask(api.GET("/api/p/{pipeline}/jobs/{id}", { params: { path: { pipeline, id } }, signal })),
    refetchInterval: (query) => (!query.state.data || isActive(query.state.data) ? LIVE_MS : false),
  });

export const tablesQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.tables(pipeline),
    queryFn: ({ signal }) => ask(api.GET("/api/p/{pipeline}/tables", { params: { path: { pipeline } }, signal })),
  });

/** The config's text as stored, with the tag to save it under. */
export const configQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.config(pipeline),
    queryFn: async ({ signal }) => {
      const response = await sendRaw(`/api/p/${encodeURIComponent(pipeline)}/config`, { signal });
      return { text: await response.text(), etag: response.headers.get("ETag") };
    },
  });

export const dashboardsQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.dashboards(pipeline),
    queryFn: ({ signal }) => ask(api.GET("/api/p/{pipeline}/dashboards", { params: { path: { pipeline } }, signal })),
  });

export const savedQueriesQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.saved(pipeline),
    queryFn: ({ signal }) => ask(api.GET("/api/p/{pipeline}/queries", { params: { path: { pipeline } }, signal })),
  });

/** What runs: versions, store and queue, limits, and when the session ends. */
export const aboutQuery = () =>
  queryOptions({ queryKey: keys.about, queryFn: ({ signal }) => ask(api.GET("/api/about", { signal })) });

/** Whether store and queue answer, told live. Asked beside the client: 503 is an answer here. */
export const readyQuery = () =>
  queryOptions({
    queryKey: keys.ready,
    queryFn: async ({ signal }) => (await fetch("/readyz", { cache: "no-store", signal })).json() as Promise<Ready>,
    refetchInterval: CALM_MS,
    retry: false,
  });
