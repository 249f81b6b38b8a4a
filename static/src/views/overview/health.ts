/** Health of a pipeline in one sentence, with figures and next steps. */
import type { Job, PipelineDetail, PipelineStatus, RunResult } from "../../api/types";
import { brokenText } from "../../boards/broken-text";
import { count, counted } from "../../format/number";
import { hasData, lastSuccess, pipelineState, succeededAt, unreadable, type StateAction } from "../../runs/table-state";
import { changedAnything, stageText, startsAt, waitingText } from "../../runs/text";

export type Step =
  | StateAction
  | { kind: "from-csv" | "jobs"; words: string }
  | { kind: "dashboard" | "fix-dashboard"; name: string; words: string }
  | { kind: "rejected"; table: string; words: string };

export interface Health {
  tone: "neutral" | "ok" | "warn" | "bad" | "run";
  sentence: string;
  /** Second line. */
  more?: string;
  /** Time of the next automatic run. */
  due?: string;
  steps: Step[];
}

/** A dashboard as far as a link needs it. */
interface NamedDashboard {
  name: string;
  title: string;
}

export interface Facts {
  detail: Pick<PipelineDetail, "config" | "problems" | "tables" | "next_due">;
  /** Newest first. */
  jobs: Job[];
  /** A published one that works, as far as known. */
  dashboard?: NamedDashboard | undefined;
  /** Published ones that can't be shown with the current tables. */
  broken?: NamedDashboard[] | undefined;
  /** The tables compared with config and lake, once known. */
  status?: PipelineStatus | undefined;
}

const dueOf = ({ detail }: Pick<Facts, "detail">): { due?: string } =>
  detail.next_due ? { due: detail.next_due } : {};

const isActive = ({ status }: Job): boolean => status === "queued" || status === "running";

interface Totals {
  tables: number;
  files: number;
  /** Sources whose CSVs were removed and whose rows are kept. */
  archived: number;
  rows: number;
  rejected: number;
  worst: string | undefined;
}

/** Sums over all tables after a run. */
export function totalsOf(result: RunResult): Totals {
  const entries = Object.entries(result.tables);
  const totals: Totals = { tables: entries.length, files: 0, archived: 0, rows: 0, rejected: 0, worst: undefined };
  let most = 0;
  for (const [name, table] of entries) {
    totals.files += table.sources_read + table.sources_skipped;
    totals.archived += table.sources_archived ?? 0;
    totals.rows += table.rows_written;
    totals.rejected += table.rows_rejected;
    if (table.rows_rejected > most) [most, totals.worst] = [table.rows_rejected, name];
  }
  return totals;
}

const tablesAre = (n: number): string =>
  n === 1 ? "The table is" : n === 2 ? "Both tables are" : `All ${count(n)} tables are`;

function activeHealth(active: Job): Health {
  const step: Step = { kind: "job", id: active.job_id, words: "Show run" };
  if (active.status === "running") {
    const doing = active.progress ? stageText(active.progress) : "starting";
    const rows = active.progress?.rows_read ? `, ${counted(active.progress.rows_read, "row")} read` : "";
    return { tone: "run", sentence: `Run in progress: ${doing}${rows}`, steps: [step] };
  }
  const at = startsAt(active);
  const due = at ? { due: at } : {};
  const retrying = active.reason === "retry";
  return {
    tone: retrying ? "warn" : "run",
    sentence: active.reason ? waitingText(active) : "A run is queued, waiting for a free worker",
    ...due,
    steps: [{ ...step, words: "Show run" }],
  };
}

/** What the tables show after runs that failed. */
function tablesShow({ jobs, status }: Facts): string {
  const completed = jobs.find((job) => job.status === "completed");
  const known = status?.tables.filter(hasData) ?? [];
  if (!completed && known.length === 0) return "No tables have been built yet.";
  const rows = completed?.result ? totalsOf(completed.result).rows : known.reduce((sum, table) => sum + table.rows, 0);
  return `Tables show ${lastSuccess(completed?.finished_at)}: ${counted(rows, "row")}.`;
}

function configHealth(facts: Facts): Health | undefined {
  const { config, problems } = facts.detail;
  if (config === "missing") {
    return {
      tone: "warn",
      sentence: "No config yet; runs need a config",
      steps: [
        { kind: "from-csv", words: "New config from CSV" },
        { kind: "config", words: "Write config" },
      ],
    };
  }
  if (config === "invalid") {
    return {
      tone: "bad",
      sentence: `${(facts.status && unreadable(facts.status.config)) ?? `The config has ${counted(Math.max(1, problems), "problem")}`}, so the next run will fail`,
      more: tablesShow(facts),
      steps: [{ kind: "config", words: "Fix config" }],
    };
  }
  return undefined;
}

function neverRunHealth({ detail }: Facts): Health {
  if (detail.tables === 0) {
    return {
      tone: "neutral",
      sentence: "The config defines no tables yet",
      steps: [
        { kind: "from-csv", words: "New config from CSV" },
        { kind: "config", words: "Write config" },
      ],
    };
  }
  if (detail.next_due) {
    return {
      tone: "run",
      sentence: "New files detected; the first run starts automatically",
      due: detail.next_due,
      steps: [],
    };
  }
  return {
    tone: "neutral",
    sentence: `No runs yet: ${counted(detail.tables, "table")} ${detail.tables === 1 ? "is" : "are"} waiting for data`,
    steps: [
      { kind: "upload", words: "Upload CSVs" },
      { kind: "run", words: "Run" },
    ],
  };
}

function failedHealth(job: Job, facts: Facts): Health {
  const { status } = facts;
  const cancelled = job.error?.code === "cancelled";
  const due = dueOf(facts);
  const state = status && pipelineState({ ...status, omitsShown: true, due: due.due !== undefined });
  const tables = tablesShow(facts);
  if (cancelled) {
    return {
      tone: "warn",
      sentence: "The last run was cancelled",
      more: tables,
      ...due,
      steps: due.due ? [] : [{ kind: "run", words: "Run" }],
    };
  }
  return {
    tone: "bad",
    sentence: `The last run failed: ${job.error?.message ?? "unknown cause"}`,
    more: [...(state?.tone === "warn" ? [state.sentence] : []), ...(state?.more ?? []), tables].join(" "),
    ...due,
    // What repairs the failure, then what else the tables need.
    steps: [
      ...(state?.actions ?? []).filter(({ kind }) => kind === "adapt"),
      { kind: "job", id: job.job_id, words: "How to fix this" },
      ...(state?.actions ?? []).filter(({ kind }) => kind !== "adapt" && kind !== "job"),
    ],
  };
}

/** Next step for a healthy pipeline. */
function next(unrun: boolean, dashboard: NamedDashboard | undefined): Step {
  if (unrun) return { kind: "run", words: "Run" };
  return dashboard === undefined
    ? { kind: "jobs", words: "Show runs" }
    : { kind: "dashboard", name: dashboard.name, words: `Open dashboard ${dashboard.title}` };
}

/** Tables that lack something, or have too much; undefined if they are up to date. */
function tablesHealth(facts: Facts): Health | undefined {
  const { status, jobs } = facts;
  const due = dueOf(facts);
  const state =
    status && pipelineState({ ...status, succeeded: succeededAt(status, jobs), due: due.due !== undefined });
  if (!state) return undefined;
  const rows = status.tables.reduce((sum, table) => sum + table.rows, 0);
  return {
    tone: state.tone,
    sentence: state.sentence,
    more: [...state.more, `${counted(rows, "row")} in total.`].join(" "),
    ...due,
    steps: state.actions,
  };
}

function completedHealth(job: Job, { detail, dashboard, broken = [] }: Facts): Health {
  const { tables, files, archived, rows, rejected, worst } = totalsOf(job.result ?? { tables: {} });
  const due = dueOf({ detail });
  if (tables === 0) return { ...neverRunHealth({ detail: { ...detail, tables: 0 }, jobs: [] }), ...due };
  const now = job.progress?.rows_rejected ?? 0;
  const some = rejected > 0 ? `; ${count(rejected)} ${rejected === 1 ? "row is" : "rows are"} rejected` : "";
  const rejectedText =
    rejected > 0 && now === rejected
      ? `; ${count(now)} ${now === 1 ? "row was" : "rows were"} rejected in the last run`
      : some;
  const kept = archived > 0 ? ` and ${counted(archived, "archived source")}` : "";
  const sentence = `${tablesAre(tables)} up to date with ${counted(files, "file")}${kept}${rejectedText}`;
  const unrun =
    detail.tables !== tables
      ? ` The config now defines ${counted(detail.tables, "table")}. Run the pipeline to apply it.`
      : "";
  const [first] = broken;
  const fix: Step[] =
    first === undefined ? [] : [{ kind: "fix-dashboard", name: first.name, words: `Fix ${first.title}` }];
  const inTotal = `${counted(rows, "row")} in total.`;
  if (due.due && broken.length === 0)
    return { tone: "run", sentence: "Files were added, changed or deleted", more: inTotal, ...due, steps: [] };
  const idle = changedAnything(job) ? "" : " The last run found no changes.";
  return {
    tone: broken.length > 0 ? "bad" : rejected > 0 ? "warn" : "ok",
    sentence: broken.length > 0 ? `${brokenText(broken)}. ${sentence}` : sentence,
    more: `${inTotal}${idle}${unrun}`,
    ...due,
    steps:
      rejected > 0 && worst !== undefined
        ? [...fix, { kind: "rejected", table: worst, words: "Show rejected rows" }]
        : [...fix, next(unrun !== "", dashboard)],
  };
}

export function healthOf(facts: Facts): Health {
  const { jobs } = facts;
  const active = jobs.find(({ status }) => status === "running") ?? jobs.findLast(isActive);
  if (active) return activeHealth(active);
  const faulty = configHealth(facts);
  if (faulty) return faulty;
  const [last] = jobs;
  if (!last) return neverRunHealth(facts);
  return last.status === "failed" ? failedHealth(last, facts) : (tablesHealth(facts) ?? completedHealth(last, facts));
}
