import type { Job } from "../api/types";
import { Bar } from "../components/status";
import { Countdown, now } from "../components/time";
import { bytes, compact, count, counted } from "../format/number";
import { timeLeft } from "../format/time";
import { observe, overallProgress } from "./rates";
import { mayHavePublished, silenceText, stageText, startsAt, waitingText } from "./text";
import "./progress.css";

/** Overall progress of a run; never goes back. */
export function RunProgress({ job }: { job: Job }) {
  const done = job.progress ? overallProgress(job.progress) : 0;
  const known = job.status === "running" && job.progress !== null && job.progress !== undefined;
  return (
    <Bar
      done={done}
      total={known ? 1 : 0}
      label={`Run progress: ${known && job.progress ? stageText(job.progress) : job.status}`}
    />
  );
}

/** Rows per second and time left, if known. */
export function RateText({ job }: { job: Job }) {
  const rates = observe(job, now.value.getTime());
  const parts = [
    rates.rowsPerS !== undefined && `${compact(rates.rowsPerS)} rows/s`,
    rates.bytesPerS !== undefined && `${bytes(rates.bytesPerS)}/s`,
    rates.leftMs !== undefined && rates.leftMs > 0 && `about ${timeLeft(rates.leftMs)} left`,
  ].filter((part) => part !== false);
  return <>{parts.join(" · ")}</>;
}

/** Describes the stage of an active job, or the reason for its wait. */
export function ActiveText({ job }: { job: Job }) {
  if (job.status === "queued") {
    const at = startsAt(job);
    return (
      <>
        {waitingText(job)}
        {at && (
          <>
            , starts <Countdown to={at} />
          </>
        )}
      </>
    );
  }
  return <>{silenceText(job) ?? (job.progress ? stageText(job.progress) : "starting")}</>;
}

/** Counters of a run; for a failed run only those of reading, since its output was discarded. */
export function countersOf(job: Job): [string, string][] {
  const { progress, status } = job;
  if (!progress) return [];
  const read: [string, string][] = [
    ["Files", `${count(progress.files_done)} / ${count(progress.files_total)}`],
    ["Read", `${bytes(progress.bytes_done)} / ${bytes(progress.bytes_total)}`],
    ["Rows in this run", count(progress.rows_read)],
  ];
  const rejected: [string, string] = ["Rejected", count(progress.rows_rejected)];
  if (status === "failed" && !mayHavePublished(job)) return [...read, rejected];
  return [
    ...read,
    ["Rows written", count(progress.rows_written)],
    rejected,
    ["Partitions written", `${count(progress.partitions_written)} / ${count(progress.partitions_total)}`],
    ["Tables", `${count(progress.mappings_done)} / ${count(progress.mappings_total)}`],
  ];
}

/** Counters of a running or failed job. */
export function Counters({ job }: { job: Job }) {
  const facts = countersOf(job);
  if (facts.length === 0) return null;
  return (
    <dl class="progress-counters" aria-label={`Run counters, ${counted(job.progress?.files_done ?? 0, "file")} read`}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="num">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
