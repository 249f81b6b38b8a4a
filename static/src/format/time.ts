/** Formats times and durations. */
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;
/** Older times are shown as dates. */
const RELATIVE_S_MAX = 30 * DAY_S;

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** `just now`, `2 min. ago`, `in 5 sec.`; a date after a month. */
export function ago(time: Date, now: Date): string {
  const seconds = Math.round((time.getTime() - now.getTime()) / 1000);
  const size = Math.abs(seconds);
  if (size < 5) return "just now";
  if (size < MINUTE_S) return relative.format(seconds, "second");
  if (size < HOUR_S) return relative.format(Math.trunc(seconds / MINUTE_S), "minute");
  if (size < DAY_S) return relative.format(Math.trunc(seconds / HOUR_S), "hour");
  if (size < RELATIVE_S_MAX) return relative.format(Math.trunc(seconds / DAY_S), "day");
  return day.format(time);
}

/** Date, hour and minute, for sentences. */
export const toMinute = (time: Date): string => minute.format(time);

/** Date, seconds and zone, for titles. */
export const exact = (time: Date): string => exactly.format(time);

/** Time left in whole seconds, rounded up: `3 s`, `3 min 20 s`. */
export function timeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  return seconds < MINUTE_S ? `${seconds} s` : duration(seconds * 1_000);
}

/** `340 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const total = Math.round(seconds);
  if (total < MINUTE_S) return `${total} s`;
  const [hours, minutes, rest] = [
    Math.trunc(total / HOUR_S),
    Math.trunc((total % HOUR_S) / MINUTE_S),
    total % MINUTE_S,
  ];
  if (hours > 0) return minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`;
  return rest > 0 ? `${minutes} min ${rest} s` : `${minutes} min`;
}
