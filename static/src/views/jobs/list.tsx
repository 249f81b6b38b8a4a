import { Fragment } from "preact";
import { Link, useLocation } from "wouter-preact";
import { isActive } from "../../api/queries";
import type { Job } from "../../api/types";
import { MessageText } from "../../components/message-text";
import { Badge, JobBadge } from "../../components/status";
import { Elapsed, Time } from "../../components/time";
import { count } from "../../format/number";
import { duration } from "../../format/time";
import { ActiveText, RunProgress } from "../../runs/progress";
import { rowsRead, shortOutcome, triggerTitle, triggerWords } from "../../runs/text";

const number = (n: number | undefined) => (n === undefined ? <span class="dim">–</span> : count(n));

function Outcome({ job }: { job: Job }) {
  if (!isActive(job)) {
    const text = shortOutcome(job);
    return (
      <span class={job.status === "failed" && job.error?.code !== "cancelled" ? "jobs-bad" : "secondary"} title={text}>
        <MessageText text={text} />
      </span>
    );
  }
  return (
    <span class="jobs-active">
      <span class="cut">
        <ActiveText job={job} />
      </span>
      <RunProgress job={job} />
    </span>
  );
}

function JobDuration({ job }: { job: Job }) {
  if (job.status === "running" && job.started_at) return <Elapsed since={job.started_at} />;
  return typeof job.duration_ms === "number" ? <>{duration(job.duration_ms)}</> : <span class="dim">–</span>;
}

/** One row per job, of equal height, so that nothing moves when a run ends. */
export function JobTable({
  jobs,
  chosen,
  addressOf,
  ofAll = false,
}: {
  jobs: Job[];
  chosen: string | undefined;
  addressOf: (job: Job) => string;
  /** Whether the pipeline of each job is shown. */
  ofAll?: boolean;
}) {
  const [, go] = useLocation();
  // Beside the pipeline there is no room for them on a narrow screen.
  const numbers = ofAll ? "num jobs-wide" : "num";
  return (
    <div class="table-box jobs-table">
      <table class="table">
        <thead>
          <tr>
            <th>Status</th>
            {ofAll && <th>Pipeline</th>}
            <th>Queued</th>
            <th class="jobs-wide">Trigger</th>
            <th class={numbers}>Duration</th>
            <th class="num jobs-wide">Files</th>
            <th class={numbers}>Rows read</th>
            <th class="num jobs-wide">Rejected</th>
            <th class="jobs-outcome">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <Fragment key={`${job.pipeline} ${job.job_id}`}>
              <tr
                data-link
                data-job={job.job_id}
                class={job.job_id === chosen ? "chosen" : ""}
                onClick={() => go(addressOf(job))}
              >
                <td>
                  <JobBadge status={job.status} code={job.error?.code} />
                </td>
                {ofAll && <td class="jobs-pipeline cut">{job.pipeline}</td>}
                <td class="jobs-when">
                  <Link
                    href={addressOf(job)}
                    aria-current={job.job_id === chosen ? "true" : undefined}
                    onClick={(event: MouseEvent) => event.stopPropagation()}
                  >
                    <Time at={job.enqueued_at} />
                  </Link>
                </td>
                <td class="jobs-wide">
                  <span class="row">
                    <span title={triggerTitle(job.trigger)}>{triggerWords(job.trigger)}</span>
                    {job.clean_run && <Badge tone="accent">clean</Badge>}
                  </span>
                </td>
                <td class={numbers}>
                  <JobDuration job={job} />
                </td>
                <td class="num jobs-wide">{number(job.progress?.files_done)}</td>
                <td class={numbers}>{number(rowsRead(job))}</td>
                <td class="num jobs-wide">
                  <span class={job.progress?.rows_rejected ? "jobs-warn" : ""}>
                    {number(job.progress?.rows_rejected)}
                  </span>
                </td>
                <td class="jobs-outcome">
                  <Outcome job={job} />
                </td>
              </tr>
              <tr
                data-link
                class={`jobs-second ${job.job_id === chosen ? "chosen" : ""}`}
                onClick={() => go(addressOf(job))}
              >
                <td colSpan={ofAll ? 3 : 4}>
                  <Outcome job={job} />
                </td>
              </tr>
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}
