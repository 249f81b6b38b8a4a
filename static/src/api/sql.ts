/** Runs SQL over the tables of a pipeline. */
import { api, ask } from "./client";
import type { QueryAnswer } from "./types";

/** @throws ApiFailure */
export const ran = (slug: string, sql: string, signal?: AbortSignal, limit?: number): Promise<QueryAnswer> =>
  ask(
    api.POST("/api/p/{pipeline}/query", {
      params: { path: { pipeline: slug } },
      body: limit === undefined ? { sql } : { sql, limit },
      ...(signal ? { signal } : {}),
    }),
  );
