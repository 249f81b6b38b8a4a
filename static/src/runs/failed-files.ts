/** The files that a failed run couldn't read. */
import { queryOptions, useQuery } from "@tanstack/preact-query";
import { sendRaw } from "../api/client";
import { jobQuery, keys } from "../api/queries";
import type { RunError } from "../api/types";

/** A row that failed a run. */
export interface JobReject {
  source: string;
  line: number | null;
  column: string | null;
  value: string | null;
  reason: string;
  message: string;
  raw: string | null;
}

interface JobRejectsPage {
  rows: JobReject[];
  total: number;
}

const REJECTS_MAX = 100;

export const jobRejectsRoute = (slug: string, id: string) =>
  `/api/p/${encodeURIComponent(slug)}/jobs/${encodeURIComponent(id)}/rejects`;

/** Null: only available as a file. */
export const jobRejectsQuery = (slug: string, id: string) =>
  queryOptions({
    queryKey: [...keys.job(slug, id), "rejects"] as const,
    queryFn: async ({ signal }): Promise<JobRejectsPage | null> => {
      const response = await sendRaw(`${jobRejectsRoute(slug, id)}?format=json&limit=${String(REJECTS_MAX)}`, {
        signal,
      });
      const isJson = response.headers.get("Content-Type")?.startsWith("application/json") ?? false;
      if (isJson) return (await response.json()) as JobRejectsPage;
      await response.body?.cancel();
      return null;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Codes of failures whose path is a source. */
const OF_A_SOURCE: ReadonlySet<string> = new Set<RunError["code"]>([
  "row_failed",
  "header_mismatch",
  "unreadable_source",
]);

/** The sources that a failure names, relative to the pipeline's folder. */
export function namedFiles(slug: string, error: RunError | null | undefined, rejects: readonly JobReject[]): string[] {
  const own = `pipelines/${slug}/`;
  const path = error?.path && OF_A_SOURCE.has(error.code) ? error.path : undefined;
  const named = [path, ...rejects.map(({ source }) => source)].filter((one) => one !== undefined);
  return [...new Set(named.map((one) => (one.startsWith(own) ? one.slice(own.length) : one)))];
}

/** The sources that the failure of a job names; undefined while they load. */
export function useFailedFiles(slug: string, id: string | undefined): string[] | undefined {
  const job = useQuery({ ...jobQuery(slug, id ?? ""), enabled: id !== undefined });
  const hasRejects = job.data?.error?.code === "too_many_rejects";
  const rejects = useQuery({ ...jobRejectsQuery(slug, id ?? ""), enabled: id !== undefined && hasRejects });
  if (id === undefined) return [];
  if (job.isPending || (hasRejects && rejects.isPending)) return undefined;
  return namedFiles(slug, job.data?.error, rejects.data?.rows ?? []);
}
