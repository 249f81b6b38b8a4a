/** Query history of a pipeline in this browser, newest first. */

/** `set aside`: never run, replaced by another text. */
export type EntryStatus = "done" | "failed" | "cancelled" | "set aside";

export interface HistoryEntry {
  sql: string;
  /** ISO time. */
  at: string;
  status: EntryStatus;
  ms?: number;
  rows?: number;
}

const ENTRIES_MAX = 100;
/** Maximum total length in characters; browser storage is small. */
const TEXT_MAX = 256 * 1024;

const STATUSES: readonly string[] = ["done", "failed", "cancelled", "set aside"] satisfies EntryStatus[];

export function isHistory(value: unknown): value is HistoryEntry[] {
  return Array.isArray(value) && value.every(isHistoryEntry);
}

function isHistoryEntry(value: unknown): value is HistoryEntry {
  if (typeof value !== "object" || value === null) return false;
  const one = value as Record<string, unknown>;
  const number = (given: unknown) => given === undefined || typeof given === "number";
  return (
    typeof one.sql === "string" &&
    typeof one.at === "string" &&
    STATUSES.includes(String(one.status)) &&
    number(one.ms) &&
    number(one.rows)
  );
}

/** Adds an entry; replaces an equal one before it, and trims the list. */
export function remember(past: HistoryEntry[], one: HistoryEntry): HistoryEntry[] {
  const text = one.sql.trim();
  if (!text) return past;
  const [latest, ...older] = past;
  const rest = latest?.sql.trim() === text ? older : past;
  let room = TEXT_MAX - one.sql.length;
  const left: HistoryEntry[] = [];
  for (const each of rest.slice(0, ENTRIES_MAX - 1)) {
    room -= each.sql.length;
    if (room < 0) break;
    left.push(each);
  }
  return [one, ...left];
}

/** Whether a text would be lost: neither in the history nor saved. */
export function isUnsaved(text: string, past: HistoryEntry[], saved: readonly { sql: string }[]): boolean {
  const own = text.trim();
  if (!own) return false;
  return !past.some(({ sql }) => sql.trim() === own) && !saved.some(({ sql }) => sql.trim() === own);
}
