import { useLocation } from "wouter-preact";
import type { JobStatusFilter } from "../../api/queries";
import { useQueryParams } from "../../browser/query-params";
import { routes } from "../../browser/routes";
import { Button } from "../../components/button";
import { SelectField } from "../../components/field";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Time } from "../../components/time";
import { useAllJobs } from "./history";
import { JobTable } from "./list";
import "./jobs.css";

const STATUSES: { value: JobStatusFilter; title: string; none: string }[] = [
  { value: "", title: "All statuses", none: "No runs yet" },
  { value: "active", title: "active", none: "No active jobs" },
  { value: "failed", title: "failed", none: "No failed jobs" },
];

/** Jobs of all pipelines, newest first. */
function Listed({ status }: { status: (typeof STATUSES)[number] }) {
  const { query, jobs, more, older, busy } = useAllJobs(status.value);
  // A job that is no longer active stays in the pages that were loaded.
  const shown = status.value === "active" ? (query.data?.jobs ?? []) : jobs;
  return (
    <>
      {query.isPending && <Skeleton lines={8} label="Loading the jobs" />}
      {query.isError && shown.length === 0 && (
        <Failed title="Couldn't load the jobs" error={query.error} onRetry={() => void query.refetch()} />
      )}
      {query.data?.complete === false && (
        <p class="secondary" role="status">
          Jobs that ended before may be missing until a worker has indexed the job records.
        </p>
      )}
      {query.data && shown.length === 0 && <Empty title={status.none}>Runs of all pipelines are listed here.</Empty>}
      {shown.length > 0 && (
        <JobTable jobs={shown} chosen={undefined} ofAll addressOf={(job) => routes.job(job.pipeline, job.job_id)} />
      )}
      {more && (
        <Button class="jobs-older" busy={busy} onClick={() => void older()}>
          Show older jobs
        </Button>
      )}
      {!more && query.data?.since && (
        <p class="secondary">
          Jobs before <Time at={query.data.since} /> are listed in their pipeline only.
        </p>
      )}
    </>
  );
}

export default function AllJobsView() {
  const [search] = useQueryParams();
  const [, go] = useLocation();
  const status = STATUSES.find((one) => one.value === search.get("status")) ?? STATUSES[0]!;
  return (
    <Page title="Jobs" full>
      <div class="jobs">
        <div class="jobs-list">
          <header class="page-head">
            <h1>Jobs of all pipelines</h1>
            <span class="grow" />
            <SelectField
              label="Status"
              bare
              value={status.value}
              onChange={(event) => go(routes.allJobs(event.currentTarget.value))}
            >
              {STATUSES.map(({ value, title }) => (
                <option key={value} value={value}>
                  {title}
                </option>
              ))}
            </SelectField>
          </header>
          <Listed key={status.value} status={status} />
        </div>
      </div>
    </Page>
  );
}
