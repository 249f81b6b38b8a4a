/** Run durations as bars, coloured by outcome. */
export interface RunMark {
  status: string;
  durationMs: number | null;
  finishedAt: string | null;
  rejected: number;
  jobId: string;
}

interface BarMark {
  x: number;
  y: number;
  width: number;
  height: number;
  tone: "ok" | "bad" | "warn" | "run";
  mark: RunMark;
}

const GAP = 2;
/** Minimum height of a bar. */
const HEIGHT_MIN = 3;

function toneOfMark({ status, rejected }: RunMark): BarMark["tone"] {
  if (status === "failed") return "bad";
  if (status === "queued" || status === "running") return "run";
  return rejected > 0 ? "warn" : "ok";
}

/** Bars from oldest (left) to newest, right-aligned. */
export function barsOf(marks: RunMark[], width: number, height: number, places: number): BarMark[] {
  const shown = marks.slice(-places);
  const step = width / places;
  const longest = Math.max(1, ...shown.map(({ durationMs }) => durationMs ?? 0));
  return shown.map((mark, at) => {
    // Square root, so that a long run doesn't flatten the others.
    const part = Math.sqrt((mark.durationMs ?? 0) / longest);
    const tall = Math.max(HEIGHT_MIN, Math.round(part * height));
    return {
      x: (places - shown.length + at) * step,
      y: height - tall,
      width: Math.max(1, step - GAP),
      height: tall,
      tone: toneOfMark(mark),
      mark,
    };
  });
}

/** Text alternative. */
export function barsText(marks: RunMark[], duration: (ms: number) => string): string {
  if (marks.length === 0) return "No runs yet";
  const failed = marks.filter(({ status }) => status === "failed").length;
  const times = marks.flatMap(({ durationMs }) => durationMs ?? []);
  const span = times.length > 0 ? `, ${duration(Math.min(...times))} to ${duration(Math.max(...times))}` : "";
  const runs = marks.length === 1 ? "The last run" : `The last ${String(marks.length)} runs`;
  if (failed === 0) return `${runs}: ${marks.length === 1 ? "not failed" : "none failed"}${span}`;
  return `${runs}: ${failed === marks.length && failed === 1 ? "failed" : `${String(failed)} failed`}${span}`;
}
