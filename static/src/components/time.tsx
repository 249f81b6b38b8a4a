import { signal } from "@preact/signals";
import { ago, duration, exact, timeLeft } from "../format/time";

/** Shared clock of all relative times. */
export const now = signal(new Date());
setInterval(() => {
  if (!document.hidden) now.value = new Date();
}, 1_000);

/** Relative time; the exact time with zone on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">–</span>;
  const time = new Date(at);
  return (
    <time dateTime={at} title={exact(time)}>
      {ago(time, now.value)}
    </time>
  );
}

/** Elapsed time, counting up. */
export function Elapsed({ since }: { since: string }) {
  return <span class="num">{duration(Math.max(0, now.value.getTime() - new Date(since).getTime()))}</span>;
}

/** Remaining time, counting down to "now". */
export function Countdown({ to }: { to: string }) {
  const left = new Date(to).getTime() - now.value.getTime();
  return (
    <time dateTime={to} title={exact(new Date(to))}>
      {left <= 0 ? "now" : `in ${timeLeft(left)}`}
    </time>
  );
}
