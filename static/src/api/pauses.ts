/** Pauses of runs: of a pipeline, or of all. */
import { queryOptions, type QueryClient } from "@tanstack/preact-query";
import { api, ask } from "./client";
import { IDLE_POLL_MS, keys } from "./queries";
import type { components } from "./schema";

export type Pauses = components["schemas"]["Pauses"];
export type Pause = components["schemas"]["Pause"];

const KEY = ["pauses"] as const;

export const pausesQuery = () =>
  queryOptions({
    queryKey: KEY,
    queryFn: ({ signal }) => ask(api.GET("/api/pauses", { signal })),
    refetchInterval: IDLE_POLL_MS,
  });

/** The pause of a pipeline itself. */
export const pauseOf = (pauses: Pauses | undefined, slug: string): Pause | undefined =>
  pauses?.pipelines.find(({ pipeline }) => pipeline === slug);

/** Whether no run of a pipeline starts: it is paused itself, or with all others. */
export const isPaused = (pauses: Pauses | undefined, slug: string): boolean =>
  pauses !== undefined && (pauses.all !== null || pauseOf(pauses, slug) !== undefined);

/** Without `slug`: all pipelines. @throws ApiFailure */
export async function pauseRuns(cache: QueryClient, slug: string | undefined, reason: string): Promise<void> {
  const body = { reason };
  if (slug === undefined) await ask(api.PUT("/api/pause", { body }));
  else await ask(api.PUT("/api/p/{pipeline}/pause", { params: { path: { pipeline: slug } }, body }));
  await cache.invalidateQueries({ queryKey: KEY });
}

/** @throws ApiFailure */
export async function resumeRuns(cache: QueryClient, slug: string | undefined): Promise<void> {
  if (slug === undefined) await ask(api.DELETE("/api/pause"));
  else await ask(api.DELETE("/api/p/{pipeline}/pause", { params: { path: { pipeline: slug } } }));
  await cache.invalidateQueries({ queryKey: KEY });
  if (slug !== undefined) await cache.invalidateQueries({ queryKey: keys.jobs(slug) });
}
