import { memo } from "preact/compat";
import type { Job } from "../api/types";
import { exact, duration } from "../format/time";
import { barsOf, barsText, type RunMark } from "./bars";
import "./sparkline.css";

const WIDTH = 180;
const HEIGHT = 28;
const PLACES = 30;

export const markOfJob = (job: Job): RunMark => ({
  jobId: job.job_id,
  status: job.status,
  durationMs: job.duration_ms ?? null,
  finishedAt: job.finished_at ?? null,
  rejected: job.progress?.rows_rejected ?? 0,
});

const title = ({ status, durationMs, finishedAt }: RunMark): string =>
  [status, durationMs === null ? "" : duration(durationMs), finishedAt ? exact(new Date(finishedAt)) : ""]
    .filter(Boolean)
    .join(" · ");

/** The last runs, oldest first: one bar per run, height is the duration. */
export const Sparkline = memo(function Sparkline({ marks, wide }: { marks: RunMark[]; wide?: boolean }) {
  const width = wide ? WIDTH * 2 : WIDTH;
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={barsText(marks.slice(-PLACES), duration)}
      viewBox={`0 0 ${String(width)} ${String(HEIGHT)}`}
      preserveAspectRatio="none"
      width={width}
      height={HEIGHT}
    >
      <line x1="0" x2={width} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      {barsOf(marks, width, HEIGHT, PLACES).map((bar) => (
        <rect key={bar.mark.jobId} x={bar.x} y={bar.y} width={bar.width} height={bar.height} rx="1" class={bar.tone}>
          <title>{title(bar.mark)}</title>
        </rect>
      ))}
    </svg>
  );
});
