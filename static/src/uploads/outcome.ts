/** What became of uploaded files, by the status of their pipeline. */
import type { PipelineStatus } from "../api/types";
import { counted } from "../format/number";
import { isCsv } from "./source-names";

interface Outcome {
  tone: "ok" | "run" | "warn" | "bad";
  text: string;
  /** The job that failed. */
  job?: string;
}

/** `keys`: uploaded files, relative to the pipeline's folder. */
export function outcomeOf(status: PipelineStatus, keys: readonly string[]): Outcome {
  const own = (files: { first: string[] }) => files.first.filter((key) => keys.includes(key));
  const unread = own(status.not_read).length;
  const waiting = status.tables.filter(({ pending }) => own(pending).length > 0);
  if (unread > 0) return { tone: "warn", text: `${counted(unread, "CSV")} not read by any table.` };
  const names = waiting.map(({ name }) => name).join(", ");
  if (waiting.length === 0) {
    const tables = status.tables.filter(({ sources }) => sources > 0).map(({ name }) => name);
    return { tone: "ok", text: tables.length === 1 ? `Loaded into ${tables[0] ?? ""}.` : "Loaded." };
  }
  const { last_job: last, active } = status;
  if (!active && last?.status === "failed" && last.error_code !== "cancelled")
    return {
      tone: "bad",
      text: `Not loaded into ${names}: ${last.error_message ?? "the run failed"}.`,
      job: last.job_id,
    };
  if (!active && !keys.some(isCsv)) return { tone: "run", text: `Waiting for the next run to load ${names}.` };
  return { tone: "run", text: `Loading into ${names}…` };
}
