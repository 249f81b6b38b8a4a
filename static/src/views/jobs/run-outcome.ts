/** Detects the end of a run and refreshes the views of its pipeline. */
import { useQueryClient } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { isActive, keys } from "../../api/queries";
import type { Job } from "../../api/types";

/** How long an outcome is shown. */
const SHOWN_MS = 8_000;
/** Queries that a run doesn't affect. */
const UNTOUCHED: ReadonlySet<unknown> = new Set(["jobs", "config", "queries"]);

/** Jobs that ended since the last look, newest first. */
export function endedSince(known: ReadonlySet<string>, jobs: Job[]): Job[] {
  return jobs.filter((job) => !isActive(job) && !known.has(job.job_id));
}

/** Outcome of the last run, for some seconds. */
export function useRunOutcome(
  slug: string,
  jobs: Job[] | undefined,
): { outcome: Job | undefined; dismiss: () => void } {
  const cache = useQueryClient();
  const known = useRef<Set<string> | undefined>(undefined);
  const [outcome, setOutcome] = useState<Job>();
  useEffect(() => {
    if (!jobs) return;
    const first = known.current === undefined;
    const ended = endedSince(known.current ?? new Set(), jobs);
    known.current ??= new Set();
    for (const job of ended) known.current.add(job.job_id);
    const newest = ended[0];
    if (first || !newest) return;
    setOutcome(newest);
    for (const job of ended) void cache.invalidateQueries({ queryKey: keys.job(slug, job.job_id) });
    void cache.invalidateQueries({
      predicate: ({ queryKey: [kind, of, what] }) =>
        kind === "lake" || kind === "pipelines" || (kind === "p" && of === slug && !UNTOUCHED.has(what)),
    });
  }, [jobs, slug, cache]);
  useEffect(() => {
    if (!outcome) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  return { outcome, dismiss: () => setOutcome(undefined) };
}
