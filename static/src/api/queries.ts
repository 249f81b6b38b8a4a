/** Queries that several views share, with their cache keys. */
import { queryOptions } from "@tanstack/preact-query";
import { api, ask, sendRaw } from "./client";
import { connection } from "./connection";
import { isDraft } from "./drafts";
import { ApiFailure, asFailure } from "./failure";
import { FreshQueryClient } from "./query-client";
import type { DashboardList, Job, PipelineStatus, Ready } from "./types";
import { byTitle } from "./titles";

/** Polling interval while something changes, in milliseconds; a job's record changes once a second. */
export const LIVE_MS = 1_000;
/** Polling interval otherwise, in milliseconds. */
export const IDLE_POLL_MS = 5_000;
const RETRIES = 2;

export const client = new FreshQueryClient({
  defaultOptions: {
    // The service may be reachable without any network, as on a laptop; only requests can tell.
    queries: {
      networkMode: "always",
      staleTime: 2_000,
      retry: (count, error) => count < RETRIES && asFailure(error).passing,
      refetchOnWindowFocus: true,
      throwOnError: false,
    },
    mutations: { networkMode: "always", retry: false },
  },
});

connection.onRecovered(() => void client.invalidateQueries());

export const keys = {
  pipelines: ["pipelines"] as const,
  cards: ["pipelines", "cards"] as const,
  settings: ["settings"] as const,
  about: ["about"] as const,
  ready: ["ready"] as const,
  allJobs: (status: string) => ["jobs", status] as const,
  pipeline: (slug: string) => ["p", slug] as const,
  jobs: (slug: string) => ["p", slug, "jobs"] as const,
  job: (slug: string, id: string) => ["p", slug, "jobs", id] as const,
  tables: (slug: string) => ["p", slug, "tables"] as const,
  status: (slug: string) => ["p", slug, "tables", "status"] as const,
  table: (slug: string, table: string) => ["p", slug, "tables", table] as const,
  config: (slug: string) => ["p", slug, "config"] as const,
  dashboards: (slug: string) => ["p", slug, "dashboards"] as const,
  saved: (slug: string) => ["p", slug, "queries"] as const,
  lake: (prefix: string) => ["lake", prefix] as const,
};

export const isActive = (job: Job): boolean => job.status === "queued" || job.status === "running";

/** Whether the pipeline doesn't exist, so that it isn't asked for again. */
const isGone = (error: unknown): boolean =>
  error instanceof ApiFailure && ["pipeline_not_found", "invalid_slug"].includes(error.code);

const listPipelines = ({ signal }: { signal: AbortSignal }) =>
  ask(api.GET("/api/pipelines", { params: { query: { details: true } }, signal }));

export const pipelinesQuery = () =>
  queryOptions({
    queryKey: keys.pipelines,
    queryFn: listPipelines,
    select: (listed) =>
      Array.isArray(listed)
        ? { pipelines: [], truncated: false }
        : { ...listed, pipelines: listed.pipelines.filter(({ slug }) => !isDraft(slug)).sort(byTitle) },
    // The cards refresh this query too while they are shown.
    refetchInterval: () =>
      client.getQueryCache().find({ queryKey: keys.cards })?.isActive() ? 3 * IDLE_POLL_MS : IDLE_POLL_MS,
  });

/**
 * Fails as the service would for a pipeline without a config, without a request that the browser would log as an
 * error. @throws ApiFailure
 */
async function needsConfig(slug: string): Promise<void> {
  const lacks = async (staleTime: number) => {
    const listed = await client.fetchQuery({ queryKey: keys.pipelines, queryFn: listPipelines, staleTime });
    return !Array.isArray(listed) && listed.pipelines.some((one) => one.slug === slug && one.config === "missing");
  };
  // A failed listing allows the request; one from before the first save is refreshed.
  const sure = await lacks(IDLE_POLL_MS)
    .then((seen) => seen && lacks(0))
    .catch(() => false);
  if (sure) throw new ApiFailure(404, "pipeline_config_not_found", "the pipeline has no `pipeline.json`");
}

export const settingsQuery = () =>
  queryOptions({ queryKey: keys.settings, queryFn: ({ signal }) => ask(api.GET("/api/settings", { signal })) });

/** The newest jobs; polls fast while one is active. */
export const jobsQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.jobs(pipeline),
    queryFn: ({ signal }) =>
      ask(api.GET("/api/p/{pipeline}/jobs", { params: { path: { pipeline }, query: { limit: 50 } }, signal })),
    refetchInterval: (query) =>
      isGone(query.state.error) ? false : query.state.data?.jobs.some(isActive) ? LIVE_MS : IDLE_POLL_MS,
  });

export type JobStatusFilter = "" | "active" | "failed";

/** A page of jobs of all pipelines. */
export const allJobsPage = (status: JobStatusFilter, page: { limit: number; before?: string }, signal?: AbortSignal) =>
  ask(
    api.GET("/api/jobs", {
      params: { query: { ...page, ...(status ? { status } : {}) } },
      ...(signal ? { signal } : {}),
    }),
  );

/** The newest jobs of all pipelines; polls fast while one is active. */
export const allJobsQuery = (status: JobStatusFilter) =>
  queryOptions({
    queryKey: keys.allJobs(status),
    queryFn: ({ signal }) => allJobsPage(status, { limit: 50 }, signal),
    refetchInterval: (query) =>
      query.state.data?.jobs.some(isActive) || query.state.data?.complete === false ? LIVE_MS : IDLE_POLL_MS,
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

/** Tables compared with the config and the CSVs in the lake. Below the tables' key, since both change with each run. */
export const statusQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.status(pipeline),
    queryFn: async ({ signal }) =>
      (await (await sendRaw(`/api/p/${encodeURIComponent(pipeline)}/status`, { signal })).json()) as PipelineStatus,
    staleTime: IDLE_POLL_MS,
    refetchInterval: (query) =>
      isGone(query.state.error) ? false : query.state.data?.active ? 2 * LIVE_MS : 2 * IDLE_POLL_MS,
  });

/** Rows of a table with sort and filters, as the API takes them. */
export interface RowsWanted {
  sort: string;
  filters: string[];
  /** A version: a time or the sequence of a commit. */
  asOf?: string;
}

/** Page size of grids. */
export const ROWS_PAGE = 200;

export const rowsPage = (
  pipeline: string,
  table: string,
  { sort, filters, asOf }: RowsWanted,
  { limit, offset, signal }: { limit: number; offset: number; signal?: AbortSignal },
) =>
  ask(
    api.GET("/api/p/{pipeline}/tables/{table}/rows", {
      params: {
        path: { pipeline, table },
        query: {
          limit,
          offset,
          ...(sort ? { sort } : {}),
          ...(filters.length > 0 ? { filter: filters } : {}),
          ...(asOf ? { as_of: asOf } : {}),
        },
      },
      ...(signal ? { signal } : {}),
    }),
  );

/** The first page of a table, with the total row count. */
export const rowsQuery = (pipeline: string, table: string, wanted: RowsWanted) =>
  queryOptions({
    queryKey: [...keys.table(pipeline, table), "rows", wanted] as const,
    queryFn: ({ signal }) => rowsPage(pipeline, table, wanted, { limit: ROWS_PAGE, offset: 0, signal }),
  });

/** A page of a table's sources and files. */
export const lineageQuery = (
  pipeline: string,
  table: string,
  query: {
    source?: string;
    file?: string;
    partition?: string;
    extra_column?: string;
    as_of?: string;
    limit?: number;
    offset?: number;
  } = {},
) =>
  queryOptions({
    queryKey: [...keys.table(pipeline, table), "lineage", query] as const,
    queryFn: ({ signal }) =>
      ask(
        api.GET("/api/p/{pipeline}/tables/{table}/lineage", { params: { path: { pipeline, table }, query }, signal }),
      ),
  });

/** Versions on a page. */
export const VERSIONS_PAGE = 50;

/** Versions of a table that can be read, newest first. */
export const commitsQuery = (pipeline: string, table: string, offset = 0) =>
  queryOptions({
    queryKey: [...keys.table(pipeline, table), "commits", offset] as const,
    queryFn: ({ signal }) => {
      const params = { path: { pipeline, table }, query: { limit: VERSIONS_PAGE, offset } };
      return ask(api.GET("/api/p/{pipeline}/tables/{table}/commits", { params, signal }));
    },
  });

/** A version of a table, and what it changed. */
export const commitQuery = (pipeline: string, table: string, sequence: number) =>
  queryOptions({
    queryKey: [...keys.table(pipeline, table), "commit", sequence] as const,
    queryFn: ({ signal }) => {
      const params = { path: { pipeline, table, sequence: String(sequence) } };
      return ask(api.GET("/api/p/{pipeline}/tables/{table}/commits/{sequence}", { params, signal }));
    },
    staleTime: Infinity,
  });

export const statsQuery = (pipeline: string, table: string) =>
  queryOptions({
    queryKey: [...keys.table(pipeline, table), "stats"] as const,
    queryFn: ({ signal }) =>
      ask(api.GET("/api/p/{pipeline}/tables/{table}/stats", { params: { path: { pipeline, table } }, signal })),
    staleTime: 60_000,
  });

/** The stored config with its ETag. */
/** The stored config. `raw`: even if it isn't JSON. @throws ApiFailure */
export async function storedConfig(pipeline: string, raw: boolean, signal: AbortSignal | null = null) {
  await needsConfig(pipeline);
  const response = await sendRaw(`/api/p/${encodeURIComponent(pipeline)}/config?raw=${raw}`, { signal });
  return { text: await response.text(), etag: response.headers.get("ETag") };
}

/** The stored config as the editor shows it. */
export const configQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.config(pipeline),
    queryFn: ({ signal }) => storedConfig(pipeline, true, signal),
  });

export const dashboardsQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.dashboards(pipeline),
    queryFn: ({ signal }) => ask(api.GET("/api/p/{pipeline}/dashboards", { params: { path: { pipeline } }, signal })),
  });

/** Dashboards with the problems that they have with the current tables; slower than the list. */
export const checkedDashboardsQuery = (pipeline: string) =>
  queryOptions({
    queryKey: [...keys.dashboards(pipeline), "checked"] as const,
    queryFn: async ({ signal }) =>
      (await (
        await sendRaw(`/api/p/${encodeURIComponent(pipeline)}/dashboards?check=1`, { signal })
      ).json()) as DashboardList,
    staleTime: IDLE_POLL_MS,
  });

/** Tables and columns that were renamed in the config; asked for only where something no longer fits. */
export const renamesQuery = (pipeline: string) =>
  queryOptions({
    queryKey: [...keys.config(pipeline), "renames"] as const,
    queryFn: async ({ signal }) =>
      (await ask(api.GET("/api/p/{pipeline}/config/renames", { params: { path: { pipeline } }, signal }))).renames,
    staleTime: IDLE_POLL_MS,
  });

export const savedQueriesQuery = (pipeline: string) =>
  queryOptions({
    queryKey: keys.saved(pipeline),
    queryFn: ({ signal }) => ask(api.GET("/api/p/{pipeline}/queries", { params: { path: { pipeline } }, signal })),
  });

/** Versions, store, queue, limits, and the session's expiry. */
export const aboutQuery = () =>
  queryOptions({ queryKey: keys.about, queryFn: ({ signal }) => ask(api.GET("/api/about", { signal })) });

/** Health of store and queue. Bypasses the client because 503 is a regular response here. */
export const readyQuery = () =>
  queryOptions({
    queryKey: keys.ready,
    queryFn: async ({ signal }) => (await fetch("/readyz", { cache: "no-store", signal })).json() as Promise<Ready>,
    refetchInterval: IDLE_POLL_MS,
    retry: false,
  });
