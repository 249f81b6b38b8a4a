import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { Copy, RotateCcw, Square } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask } from "../../api/client";
import { asFailure } from "../../api/failure";
import { isActive, jobQuery, keys } from "../../api/queries";
import type { Job } from "../../api/types";
import { Button, IconButton } from "../../components/button";
import { copyText } from "../../components/grid/copy";
import { Failed, Note, Skeleton } from "../../components/states";
import { Badge, JobBadge } from "../../components/status";
import { Time } from "../../components/time";
import { toast } from "../../components/toasts";
import { duration } from "../../format/time";
import { routes } from "../../browser/routes";
import { Counters, RateText, ActiveText, RunProgress } from "../../runs/progress";
import { JobFailure } from "./failure";
import { remedyOfRun } from "./remedies";
import { Stages } from "./stages";
import { TableResults } from "./tables";
import { MessageText } from "../../components/message-text";
import { endText, isDryRun, triggerTitle, triggerWords } from "../../runs/text";
import "./detail.css";

/** Cancels or retries a job. */
export function useJobActions(slug: string, job: Job) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [busy, setBusy] = useState<"cancel" | "retry">();
  const act = async (what: "cancel" | "retry", failed: string, action: () => Promise<void>) => {
    setBusy(what);
    try {
      await action();
    } catch (error) {
      toast.failed(failed, error);
    } finally {
      setBusy(undefined);
      void cache.invalidateQueries({ queryKey: keys.jobs(slug) });
    }
  };
  const path = { pipeline: slug, id: job.job_id };
  return {
    busy,
    cancel: () =>
      act("cancel", "Couldn't cancel the job", async () => {
        const now = await ask(api.POST("/api/p/{pipeline}/jobs/{id}/cancel", { params: { path } }));
        cache.setQueryData(jobQuery(slug, job.job_id).queryKey, now);
        toast.done("Cancelling the job. No tables are changed.");
      }),
    retry: () =>
      act("retry", "Couldn't retry the job", async () => {
        const again = await ask(api.POST("/api/p/{pipeline}/jobs/{id}/retry", { params: { path } }));
        cache.setQueryData(jobQuery(slug, again.job_id).queryKey, again);
        go(`~${routes.job(slug, again.job_id)}`);
      }),
  };
}

function Head({ slug, job }: { slug: string; job: Job }) {
  const { busy, cancel, retry } = useJobActions(slug, job);
  // Publishing can't be cancelled.
  const late = job.progress?.stage === "publishing" || job.progress?.stage === "finishing";
  // The failure below offers it.
  const hasOwnRetry = job.status === "failed" && job.error && remedyOfRun(job.error).steps.includes("retry");
  return (
    <header class="job-head">
      <JobBadge status={job.status} code={job.error?.code} />
      <span class="secondary" title={triggerTitle(job.trigger)}>
        {triggerWords(job.trigger)}
      </span>
      {job.clean_run && <Badge tone="accent">clean run</Badge>}
      <span class="grow" />
      {isActive(job) ? (
        <Button
          icon={<Square />}
          busy={busy === "cancel"}
          disabled={job.status === "running" && late}
          title={late ? "The job is publishing and can no longer be cancelled" : undefined}
          onClick={() => void cancel()}
        >
          Cancel
        </Button>
      ) : (
        !hasOwnRetry &&
        !isDryRun(job) && (
          <Button icon={<RotateCcw />} busy={busy === "retry"} onClick={() => void retry()}>
            Retry
          </Button>
        )
      )}
    </header>
  );
}

/** Progress or outcome; both have the same height. */
function Outcome({ job }: { job: Job }) {
  if (!isActive(job)) {
    return (
      <div class="job-now">
        <p class="job-sentence">{endText(job)}</p>
      </div>
    );
  }
  return (
    <div class="job-now">
      <p class="job-sentence row">
        <span class="grow">
          <ActiveText job={job} />
        </span>
        <span class="num">
          <RateText job={job} />
        </span>
      </p>
      <RunProgress job={job} />
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const Copied = ({ text, of }: { text: string; of: string }) => (
  <span class="job-id">
    <code>{text}</code>
    <IconButton label={`Copy ${of}`} icon={<Copy />} onClick={() => void copyText(text, of)} />
  </span>
);

function Facts({ job }: { job: Job }) {
  return (
    <section class="section">
      <h3>Job details</h3>
      <dl class="job-facts">
        <Fact name="ID">
          <Copied text={job.job_id} of="job ID" />
        </Fact>
        <Fact name="Attempt">
          {job.attempt === 0 ? "not started" : `${String(job.attempt)} of ${String(job.max_attempts)}`}
        </Fact>
        <Fact name="Queued">
          <Time at={job.enqueued_at} />
        </Fact>
        {job.started_at && (
          <Fact name="Started">
            <Time at={job.started_at} />
          </Fact>
        )}
        {job.finished_at && (
          <Fact name="Ended">
            <Time at={job.finished_at} />
            {typeof job.duration_ms === "number" && `, took ${duration(job.duration_ms)}`}
          </Fact>
        )}
        <Fact name="Folder">
          <code>{job.prefix}</code>
        </Fact>
        {job.worker && (
          <Fact name="Worker">
            <Copied text={job.worker} of="worker name" />
          </Fact>
        )}
      </dl>
    </section>
  );
}

/** Details of a job, live while it is active. */
export function JobDetail({ slug, id }: { slug: string; id: string }) {
  const { data: job, error, refetch } = useQuery(jobQuery(slug, id));
  if (!job) {
    if (!error) return <Skeleton lines={8} label="Loading the job" />;
    if (asFailure(error).status !== 404)
      return <Failed title="Couldn't load the job" error={error} onRetry={() => void refetch()} />;
    const all = (
      <Link class="button" href={`~${routes.jobs(slug)}`}>
        All jobs
      </Link>
    );
    return <Failed title="Job not found" error={error} actions={all} />;
  }
  return (
    <div class="job" data-status={job.status}>
      <Head slug={slug} job={job} />
      <Outcome job={job} />
      {job.status === "failed" &&
        job.error &&
        (isDryRun(job) ? (
          <Note tone="bad">
            <MessageText text={job.error.message} />
          </Note>
        ) : (
          <JobFailure slug={slug} job={job} error={job.error} />
        ))}
      {isActive(job) && job.error && (
        <Note tone="warn">
          Attempt {job.attempt} failed: <MessageText text={job.error.message} />
        </Note>
      )}
      <Stages job={job} />
      {(job.status === "running" || (job.status === "failed" && job.progress)) && <Counters job={job} />}
      {job.result && <TableResults slug={slug} result={job.result} clean={job.clean_run} />}
      <Facts job={job} />
    </div>
  );
}
