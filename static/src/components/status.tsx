import type { ComponentChildren } from "preact";
import type { JobStatus } from "../api/types";
import "./status.css";

export type Tone = "neutral" | "ok" | "warn" | "bad" | "run" | "accent";

/** Short state of a thing; never by colour alone. */
export function Badge({
  tone = "neutral",
  children,
  title,
}: {
  tone?: Tone;
  children: ComponentChildren;
  title?: string | undefined;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

const TONES: Record<JobStatus, Tone> = { queued: "neutral", running: "run", completed: "ok", failed: "bad" };

export const toneOf = (status: JobStatus): Tone => TONES[status];

/** `code`: error code. A cancelled job isn't shown as an error. */
export function JobBadge({ status, code }: { status: JobStatus; code?: string | null | undefined }) {
  if (status === "failed" && code === "cancelled") return <Badge>cancelled</Badge>;
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

/** Progress bar; indeterminate without `total`. */
export function Bar({ done, total, label }: { done: number; total: number; label: string }) {
  const known = total > 0;
  const part = known ? Math.min(1, done / total) : 0;
  return (
    <span
      class="bar"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={known ? Math.round(part * 100) : undefined}
    >
      <span class="bar-done" style={{ width: `${part * 100}%` }} />
    </span>
  );
}
