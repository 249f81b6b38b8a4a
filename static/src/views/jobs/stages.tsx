import type { Job, Stage } from "../../api/types";
import { Elapsed, now } from "../../components/time";
import { duration } from "../../format/time";
import { STAGES, stageTimes } from "../../runs/rates";
import { STAGE_WORDS } from "../../runs/text";

type Mark = "done" | "now" | "todo" | "failed";

/** State of a stage in a job. */
export function markOf(job: Job, stage: Stage): Mark {
  if (job.status === "completed") return "done";
  if (job.status === "queued" || !job.progress) return "todo";
  const at = STAGES.indexOf(job.progress.stage);
  const of = STAGES.indexOf(stage);
  if (of < at) return "done";
  if (of > at) return "todo";
  return job.status === "failed" ? "failed" : "now";
}

const MARK_LABELS: Record<Mark, string> = { done: "done", now: "now", todo: "pending", failed: "stopped" };

/** Stages of a job with their times. */
export function Stages({ job }: { job: Job }) {
  const ended = job.finished_at ? new Date(job.finished_at).getTime() : undefined;
  const took = stageTimes(job, ended ?? now.value.getTime());
  const waited = job.started_at ? new Date(job.started_at).getTime() - new Date(job.enqueued_at).getTime() : undefined;
  return (
    <ol class="job-stages" aria-label="Stages">
      <li data-mark={job.status === "queued" ? "now" : "done"}>
        <span>Queued</span>
        <span class="num dim">
          {job.status === "queued" ? <Elapsed since={job.enqueued_at} /> : waited !== undefined ? duration(waited) : ""}
        </span>
      </li>
      {STAGES.map((stage) => {
        const mark = markOf(job, stage);
        const ms = took[stage];
        return (
          <li key={stage} data-mark={mark}>
            <span>
              {STAGE_WORDS[stage]}
              <span class="for-readers">, {MARK_LABELS[mark]}</span>
            </span>
            <span class="num dim">{ms !== undefined && mark !== "todo" ? duration(ms) : ""}</span>
          </li>
        );
      })}
    </ol>
  );
}
