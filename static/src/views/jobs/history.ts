/** Lists jobs: the newest page is polled, older pages are loaded on request. */
import { useQuery } from "@tanstack/preact-query";
import { useRef, useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { allJobsPage, allJobsQuery, jobsQuery, type JobStatusFilter } from "../../api/queries";
import type { Job } from "../../api/types";
import { toast } from "../../components/toasts";

interface Filter {
  /** Empty: all. `active`: queued or running. */
  status: string;
  trigger: string;
}

const PAGE_JOBS = 100;

/** Merges lists; newer records win; newest job first. */
export function merged(before: Job[], newer: Job[]): Job[] {
  const jobs = new Map(before.map((job) => [job.job_id, job]));
  for (const job of newer) jobs.set(job.job_id, job);
  return [...jobs.values()].sort(
    (a, b) => b.enqueued_at.localeCompare(a.enqueued_at) || b.job_id.localeCompare(a.job_id),
  );
}

export function matches(job: Job, { status, trigger }: Filter): boolean {
  const active = job.status === "queued" || job.status === "running";
  return (!status || job.status === status || (status === "active" && active)) && (!trigger || job.trigger === trigger);
}

interface JobPage {
  jobs: Job[];
  next?: string | null;
}

export function useHistory(slug: string) {
  const query = useQuery(jobsQuery(slug));
  const before = (next: string) =>
    ask(
      api.GET("/api/p/{pipeline}/jobs", {
        params: { path: { pipeline: slug }, query: { limit: PAGE_JOBS, before: next } },
      }),
    );
  return { query, ...usePages(query.data, before) };
}

export function useAllJobs(status: JobStatusFilter) {
  const query = useQuery(allJobsQuery(status));
  return { query, ...usePages(query.data, (next) => allJobsPage(status, { limit: PAGE_JOBS, before: next })) };
}

/** Jobs of the newest page, which is polled, and of the older ones that were requested. */
function usePages(newest: JobPage | undefined, pageBefore: (next: string) => Promise<JobPage>) {
  const jobs = useRef<Job[]>([]);
  // Undefined: the first page has the cursor.
  const [cursor, setCursor] = useState<string | null>();
  const [busy, setBusy] = useState(false);
  const [, redraw] = useState(0);
  if (newest) jobs.current = merged(jobs.current, newest.jobs);
  const next = cursor === undefined ? (newest?.next ?? null) : cursor;
  const older = async () => {
    if (next === null) return;
    setBusy(true);
    try {
      const page = await pageBefore(next);
      jobs.current = merged(page.jobs, jobs.current);
      setCursor(page.next ?? null);
    } catch (error) {
      toast.failed("Couldn't load older jobs", error);
    } finally {
      setBusy(false);
      redraw((times) => times + 1);
    }
  };
  return { jobs: jobs.current, more: next !== null, older, busy };
}
