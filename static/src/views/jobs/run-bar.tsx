import { useQuery } from "@tanstack/preact-query";
import { X } from "lucide-preact";
import { Link, useLocation } from "wouter-preact";
import { isActive, jobsQuery } from "../../api/queries";
import type { Job } from "../../api/types";
import { IconButton } from "../../components/button";
import { JobBadge, toneOf } from "../../components/status";
import { counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { useRunOutcome } from "./run-outcome";
import { ActiveText, RateText, RunProgress } from "../../runs/progress";
import { MessageText } from "../../components/message-text";
import { outcomeText } from "../../runs/text";
import "./run-bar.css";

/** The running job, or the first queued one. */
function shownJob(jobs: Job[]): Job | undefined {
  return jobs.find((job) => job.status === "running") ?? jobs.findLast(isActive);
}

/** Active run at the bottom of a pipeline's views; its outcome for some seconds. */
export function RunBar({ slug }: { slug: string }) {
  const { data } = useQuery(jobsQuery(slug));
  const [path] = useLocation();
  const { outcome, dismiss } = useRunOutcome(slug, data?.jobs);
  const active = data ? shownJob(data.jobs) : undefined;
  const waiting = (data?.jobs.filter(isActive).length ?? 0) - 1;
  if (active) {
    return (
      <Link href={`~${routes.job(slug, active.job_id)}`} class="run-bar" data-tone={toneOf(active.status)}>
        <RunProgress job={active} />
        <span class="run-bar-line">
          <JobBadge status={active.status} />
          <span class="cut">
            <ActiveText job={active} />
          </span>
          <span class="grow" />
          <span class="run-bar-pace num">
            <RateText job={active} />
          </span>
          {waiting > 0 && (
            <span class="run-bar-more secondary">{counted(waiting, "more run queued", "more runs queued")}</span>
          )}
        </span>
      </Link>
    );
  }
  // The page of a job shows its outcome.
  if (!outcome || path.endsWith(outcome.job_id)) return null;
  return (
    <div
      class="run-bar"
      data-tone={outcome.error?.code === "cancelled" ? "neutral" : toneOf(outcome.status)}
      role="status"
    >
      <span class="run-bar-line">
        <JobBadge status={outcome.status} code={outcome.error?.code} />
        <Link href={`~${routes.job(slug, outcome.job_id)}`} class="cut">
          Run <MessageText text={outcomeText(outcome)} />
        </Link>
        <span class="grow" />
        <IconButton label="Dismiss" icon={<X />} onClick={dismiss} />
      </span>
    </div>
  );
}
