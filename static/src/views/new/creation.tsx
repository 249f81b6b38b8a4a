import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import { isActive } from "../../api/queries";
import type { Job } from "../../api/types";
import { Button } from "../../components/button";
import { Failed } from "../../components/states";
import { Badge, Bar, type Tone } from "../../components/status";
import { Countdown } from "../../components/time";
import { bytes, count, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { uploads } from "../../uploads";
import { ActiveText, RunProgress } from "../../runs/progress";
import type { CreationState, Step } from "./create";

const ORDER: Step[] = ["create", "config", "upload", "run"];
const WORDS: Record<Step, string> = {
  create: "Pipeline",
  config: "Config",
  upload: "Files",
  run: "First run",
  done: "Done",
};

interface Props {
  making: CreationState;
  slug: string;
  onRetry: () => void;
  onEdit: () => void;
}

/** Progress of the creation, in place of the button. */
export function CreationStep({ making, slug, onRetry, onEdit }: Props) {
  const at = making.step === "done" ? ORDER.length : ORDER.indexOf(making.step);
  const failed = making.failure;
  const card = useRef<HTMLDivElement>(null);
  // It is longer than the bar with the button that it replaces.
  const hasFailed = failed !== undefined;
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), [hasFailed, making.step]);
  return (
    <div class="card new-making" aria-live="polite" ref={card}>
      <ol>
        {ORDER.map((step, place) => (
          <li key={step}>
            <span class="new-step">{WORDS[step]}</span>
            <Mark here={place - at} failed={failed?.step === step} waits={step === "run" && !making.job} />
            <span class="grow">{place === at && !failed && <Progress making={making} />}</span>
          </li>
        ))}
      </ol>
      {failed && (
        <Failed
          title={FAILURE_LABELS[failed.step]}
          error={failed.error}
          onRetry={onRetry}
          actions={
            <>
              {failed.step !== "create" && <Button onClick={onEdit}>Edit and retry</Button>}
              {making.job && failed.step === "run" && (
                <Link class="button" href={routes.job(slug, making.job.job_id)}>
                  Open job
                </Link>
              )}
            </>
          }
        />
      )}
      {!failed && making.step !== "create" && (
        <p class="secondary">
          You can leave this page: <Link href={routes.pipeline(slug)}>{slug}</Link> shows the progress.
        </p>
      )}
    </div>
  );
}

const FAILURE_LABELS: Record<Step, string> = {
  create: "The pipeline wasn't created",
  config: "The config wasn't saved",
  upload: "Upload failed",
  run: "The first run failed",
  done: "",
};

export const failureLabel = (step: Step): string => FAILURE_LABELS[step];

function Mark({ here, failed, waits }: { here: number; failed: boolean; waits: boolean }) {
  const [tone, word]: [Tone, string] = failed
    ? ["bad", "failed"]
    : here < 0
      ? ["ok", "done"]
      : here === 0
        ? ["run", waits ? "waiting" : "now"]
        : ["neutral", "next"];
  return <Badge tone={tone}>{word}</Badge>;
}

function Progress({ making }: { making: CreationState }) {
  const { batch, due, job, step } = making;
  if (step === "upload" && batch) {
    // Subscribes to the counts.
    const { rate, packing } = uploads.state.value;
    const total = batch.uploads.reduce((sum, { size }) => sum + size, 0);
    const sent = batch.uploads.reduce((sum, one) => sum + (one.state === "done" ? one.size : one.sent), 0);
    return (
      <span class="new-progress">
        <Bar done={sent} total={total} label="Uploaded" />
        <span class="num">
          {count(batch.files - batch.left)} of {counted(batch.files, "file")} ·{" "}
          {packing
            ? `compressing: ${bytes(packing.done)} of ${bytes(packing.total)}`
            : `${bytes(sent)} of ${bytes(total)}`}
          {rate > 0 && ` · ${bytes(rate)}/s`}
        </span>
      </span>
    );
  }
  if (step !== "run") return null;
  if (job && isActive(job)) return <Running job={job} />;
  if (due)
    return (
      <span class="secondary">
        Starts <Countdown to={due} /> if no more files arrive
      </span>
    );
  return <span class="secondary">Waiting for the new files to be detected</span>;
}

function Running({ job }: { job: Job }) {
  const { progress } = job;
  return (
    <span class="new-progress">
      <RunProgress job={job} />
      <span class="num">
        <ActiveText job={job} />
        {progress && progress.rows_read > 0 && ` · ${counted(progress.rows_read, "row")} read`}
      </span>
    </span>
  );
}
