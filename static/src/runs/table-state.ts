/**
 * The state of each table: whether it is up to date with its CSVs and the config, and if not, why and what to do. All
 * views share these texts.
 */
import type { Job, PipelineStatus, Table, TableStatus } from "../api/types";
import { count, counted } from "../format/number";
import { toMinute } from "../format/time";

export type StateTone = "neutral" | "ok" | "warn" | "bad" | "run";

/** The next step of a state. */
export type StateAction =
  | { kind: "run"; words: string }
  | { kind: "config"; words: string }
  | { kind: "upload"; words: string }
  | { kind: "job"; id: string; words: string }
  /** `files`: those that the run `job` couldn't read; empty: look for them in its record. */
  | { kind: "adapt"; table: string; files: string[]; job?: string; words: string }
  | { kind: "clean"; words: string }
  | { kind: "table"; key: string; words: string };

export interface TableState {
  tone: StateTone;
  /** Short, for badges and lists. */
  label: string;
  /** A whole sentence, without the table's name. */
  sentence: string;
  action?: StateAction;
}

/** A status with the end of the last successful run, if known. */
export interface KnownStatus extends PipelineStatus {
  succeeded?: string | undefined;
  /** Leaves out what the tables show, for views that say it themselves. */
  omitsShown?: boolean;
  /** Whether a run is about to start by itself. */
  due?: boolean;
}

/** The part of a status about one table. */
type Context = Pick<KnownStatus, "config" | "active" | "last_job" | "succeeded" | "omitsShown" | "due">;

/** Why the config can't be read at all, with line and column; undefined if it can, whatever its problems are. */
export function unreadable({ state, problems }: PipelineStatus["config"]): string | undefined {
  const [first] = problems ?? [];
  return state === "invalid" && first?.kind === "syntax" ? `The config can't be read: ${first.message}` : undefined;
}

const RUN: StateAction = { kind: "run", words: "Run now" };

/** Names of files: `a.csv, b.csv and 3 more`. */
export function named({ count: total, first }: { count: number; first: string[] }, shown = 2): string {
  const some = first.slice(0, shown).map((key) => key.slice(key.lastIndexOf("/") + 1));
  return total > some.length ? `${some.join(", ")} and ${count(total - some.length)} more` : some.join(", ");
}

/** Whether a list of files contains `key`, or may contain it beyond its first names. */
export const mayList = ({ count: total, first }: { count: number; first: string[] }, key: string): boolean =>
  first.includes(key) || total > first.length;

/** The end of the last successful run. `jobs`: newest first; those known. */
export function succeededAt(
  { last_job }: Pick<PipelineStatus, "last_job">,
  jobs: readonly Pick<Job, "status" | "finished_at">[] | undefined,
): string | undefined {
  if (last_job?.status === "completed") return last_job.finished_at ?? undefined;
  return jobs?.find(({ status }) => status === "completed")?.finished_at ?? undefined;
}

/** `Data of Nov 27, 2026, 8:24 PM` */
export const dataOf = (succeeded: string): string => `Data of ${toMinute(new Date(succeeded))}`;

/** `the last successful run (Nov 27, 2026, 8:24 PM)` */
export const lastSuccess = (succeeded?: string | null): string =>
  `the last successful run${succeeded ? ` (${toMinute(new Date(succeeded))})` : ""}`;

export const hasData = ({ rows, sources, archived }: TableStatus): boolean => rows + sources + archived > 0;

/** A sentence, followed by what the table shows although it isn't up to date. */
function withShown(sentence: string, table: TableStatus, { succeeded, omitsShown }: Context): string {
  if (omitsShown) return sentence;
  return `${sentence} ${hasData(table) ? `The table shows ${lastSuccess(succeeded)}.` : "The table has no data yet."}`;
}

/** The last job, if it failed and none is active. */
const failedJob = ({ active, last_job }: Pick<Context, "active" | "last_job">) =>
  !active && last_job?.status === "failed" && last_job.error_code !== "cancelled" ? last_job : undefined;

/** Error codes of runs that fail because a mapping doesn't fit its files. */
const MISREAD: ReadonlySet<string> = new Set([
  "too_many_rejects",
  "row_failed",
  "header_mismatch",
  "unreadable_source",
]);

export const isMisread = (code: string | null | undefined): boolean => MISREAD.has(code ?? "");

/** Whether the message of a failed run is about this table, or about all of them. */
export const isAbout = (message: string | null | undefined, { name }: Pick<TableStatus, "name">): boolean =>
  !/\btable `/.test(message ?? "") || (message ?? "").includes(`table \`${name}\``);

/** The last job, if it failed because of this table. */
function failedJobOf(table: TableStatus, context: Context) {
  const failed = failedJob(context);
  return failed && isAbout(failed.error_message, table) ? failed : undefined;
}

/** Pending files that the last job tried to load: the others came after its start. */
const attemptedFiles = ({ pending, untried }: TableStatus) => ({
  count: pending.count - untried.count,
  first: pending.first.filter((key) => !untried.first.includes(key)),
});

/** How many files of all tables the last job failed to load, if it failed and none runs. */
export const failedFiles = (status: PipelineStatus): number =>
  status.tables.reduce((sum, table) => sum + (failedJobOf(table, status) ? attemptedFiles(table).count : 0), 0);

/** Pending files that no run has tried to load yet, or that wait until another table can be loaded. */
const untriedFiles = (table: TableStatus, context: Context) =>
  failedJobOf(table, context) ? table.untried : table.pending;

/** How many of them all tables have. */
export const waitingFiles = (status: PipelineStatus): number =>
  status.tables.reduce((sum, table) => sum + untriedFiles(table, status).count, 0);

const toLoad = (files: number): string => `${counted(files, "file")} to load`;

export interface PendingFile {
  /** Relative to the pipeline's folder. */
  key: string;
  state: "failed" | "loading" | "waiting";
}

/** Files of a table that it doesn't have, as far as they are named, those that failed first. */
export function pendingFiles(table: TableStatus, context: Context): PendingFile[] {
  const failed = new Set(failedJobOf(table, context) ? attemptedFiles(table).first : []);
  const state = context.active ? "loading" : "waiting";
  const files = table.pending.first.map((key): PendingFile => ({ key, state: failed.has(key) ? "failed" : state }));
  return files.sort((a, b) => Number(b.state === "failed") - Number(a.state === "failed"));
}

const filesAre = (files: { count: number; first: string[] }) =>
  `${counted(files.count, "file")} (${named(files)}) ${files.count === 1 ? "is" : "are"}`;

/** What the last run couldn't do for the table: load its files, or apply its config. */
function failureState(table: TableStatus, context: Context): TableState | undefined {
  const { name, state } = table;
  const failed = failedJobOf(table, context);
  if (!failed) return undefined;
  const tried = attemptedFiles(table);
  const why = failed.error_message ?? "unknown cause";
  const action: StateAction = isMisread(failed.error_code)
    ? { kind: "adapt", table: name, files: tried.first, job: failed.job_id, words: "Fix…" }
    : { kind: "job", id: failed.job_id, words: "How to fix this" };
  if (tried.count > 0)
    return {
      tone: "bad",
      label: `${counted(tried.count, "file")} failed`,
      sentence: `${filesAre(tried)} not in the table, because the last run failed: ${why}.`,
      action,
    };
  if (state !== "changed") return undefined;
  return { tone: "bad", label: "last run failed", sentence: `The last run failed: ${why}.`, action };
}

function pendingStates(table: TableStatus, context: Context): TableState[] {
  const { pending, state } = table;
  if (context.active) return [{ tone: "run", label: "loading", sentence: `${filesAre(pending)} being loaded.` }];
  const failed = failedJob(context);
  const waiting = untriedFiles(table, context);
  if (waiting.count === 0) return [];
  const isHeld = failed !== undefined && !failedJobOf(table, context) && attemptedFiles(table).count > 0;
  const why = isHeld
    ? "not in the table yet, because the last run failed for another table: a run changes all tables or none"
    : state === "new" && !failed
      ? "waiting for the first run"
      : "new or changed and not in the table yet";
  const waits: TableState = { tone: "warn", label: toLoad(waiting.count), sentence: `${filesAre(waiting)} ${why}.` };
  return [isHeld ? waits : { ...waits, action: RUN }];
}

/** All states of a table, the most important first. */
export function tableStates(table: TableStatus, context: Context): TableState[] {
  const states: TableState[] = [];
  if (context.config.state === "invalid")
    states.push({
      tone: "bad",
      label: "config invalid",
      sentence: withShown(`${unreadable(context.config) ?? "The config has problems"}, so runs fail.`, table, context),
      action: { kind: "config", words: "Fix config" },
    });
  if (context.config.state === "missing")
    states.push({
      tone: "warn",
      label: "no config",
      sentence: withShown("The pipeline has no config, so runs fail.", table, context),
      action: { kind: "config", words: "Write config" },
    });
  const failure = failureState(table, context);
  if (failure) states.push(failure);
  if (table.state === "changed")
    states.push(
      context.active
        ? // The run may have read an earlier config.
          {
            tone: "run",
            label: "run in progress",
            sentence: withShown("Config changed. A run is in progress.", table, context),
          }
        : {
            tone: "warn",
            label: "config not applied",
            sentence: withShown("Config changed, not applied yet.", table, context),
            action: RUN,
          },
    );
  if (table.state === "removed")
    states.push({
      tone: "warn",
      label: "not in the config",
      sentence: "The config no longer has this table. A clean run deletes it.",
      action: { kind: "clean", words: "Clean run…" },
    });
  const { removed } = table;
  if (removed.count > 0) {
    const csvs = removed.count === 1 ? "a deleted CSV" : `${count(removed.count)} deleted CSVs`;
    const has = removed.rows === 1 ? "row is" : "rows are";
    states.push({
      tone: "warn",
      label: "rows of removed CSVs",
      sentence: `${count(removed.rows)} ${has} from ${csvs} (${named(removed)}). A run removes them.`,
      action: RUN,
    });
  }
  if (table.pending.count > 0) states.push(...pendingStates(table, context));
  if (states.length === 0) states.push(settled(table));
  if (context.active || context.due) for (const state of states) if (state.action?.kind === "run") delete state.action;
  return states;
}

function settled({ state, sources, archived }: TableStatus): TableState {
  if (state === "new" || (sources === 0 && archived === 0))
    return {
      tone: "neutral",
      label: "no data",
      sentence: "No files yet. Upload CSVs to fill the table.",
      action: { kind: "upload", words: "Upload" },
    };
  const read = sources - archived;
  const kept = archived > 0 ? ` and ${counted(archived, "archived source")}` : "";
  return { tone: "ok", label: "up to date", sentence: `Up to date with ${counted(read, "file")}${kept}.` };
}

/** Columns that files of the table have and the config doesn't; undefined if there are none. */
export function extraColumns({
  name,
  extra_columns: extra = [],
}: Pick<Table, "name" | "extra_columns">): string | undefined {
  if (extra.length === 0) return undefined;
  const names = extra.slice(0, 3).map((one) => one.name);
  const more = extra.length > names.length ? ` and ${count(extra.length - names.length)} more` : "";
  const some = extra.length === 1 ? "a new column, " : `${counted(extra.length, "new column")}: `;
  return `${name}: the files have ${some}${names.join(", ")}${more}.`;
}

export const tableState = (table: TableStatus, context: Context): TableState =>
  tableStates(table, context)[0] ?? settled(table);

export const needsAction = ({ tone }: TableState): boolean => tone === "warn" || tone === "bad";

export interface PipelineState {
  tone: StateTone;
  label: string;
  sentence: string;
  /** Further sentences, shown after the first. */
  more: string[];
  /** The next steps of all of them, the most important first. */
  actions: StateAction[];
}

const ACTIONS_MAX = 3;

/** The next steps of states, each once. */
export function actionsOf(states: readonly TableState[]): StateAction[] {
  const found = new Map<string, StateAction>();
  for (const { action } of states) {
    if (!action) continue;
    const key = action.kind === "adapt" ? `adapt ${action.table}` : action.kind;
    if (!found.has(key)) found.set(key, action);
  }
  return [...found.values()].slice(0, ACTIONS_MAX);
}

/** The state of a pipeline whose tables aren't all up to date; undefined if they are, or wait for data. */
export function pipelineState(status: KnownStatus): PipelineState | undefined {
  const troubled = status.tables
    .map((table) => ({ table, states: tableStates(table, status).filter(needsAction) }))
    .filter(({ states }) => states.length > 0);
  const unread = notRead(status);
  const isBad = ({ states }: { states: TableState[] }) => states.some(({ tone }) => tone === "bad");
  const wide = status.config.state === "invalid" || status.config.state === "missing";
  // A failure of any table comes first.
  const sorted = wide ? troubled : [...troubled.filter(isBad), ...troubled.filter((one) => !isBad(one))];
  const [first] = sorted;
  const [state, ...others] = first?.states ?? [];
  if (!first || !state) return unread && { ...unread, more: [], actions: actionsOf([unread]) };
  const several = status.tables.length > 1 && !wide;
  const named = ({ table, states }: { table: TableStatus; states: TableState[] }): TableState[] =>
    states.map((one) =>
      several && one.action?.kind === "adapt"
        ? { ...one, action: { ...one.action, words: `Fix ${table.name}…` } }
        : one,
    );
  const name = several ? `${first.table.name}: ` : "";
  const more = others.map(({ sentence }) => sentence);
  if (!wide)
    for (const { table, states } of sorted.slice(1))
      more.push(...states.map(({ sentence }) => `${table.name}: ${sentence}`));
  if (unread) more.push(unread.sentence);
  return {
    tone: troubled.some(isBad) ? "bad" : "warn",
    label: state.label === toLoad(untriedFiles(first.table, status).count) ? toLoad(waitingFiles(status)) : state.label,
    sentence: name + state.sentence,
    more,
    actions: actionsOf((wide ? sorted.slice(0, 1) : sorted).flatMap(named)),
  };
}

/** Why panels don't show the latest data: the most important state of the tables that `sql` names. */
export interface Staleness {
  tone: StateTone;
  /** `Data of Nov 27, 2026, 8:24 PM · the last run failed` */
  sentence: string;
  table: string;
  /** The run that failed, if that is why. */
  job: string | undefined;
}

export function staleness(status: KnownStatus, sql: string): Staleness | undefined {
  const words = new Set(sql.toLowerCase().match(/\w+/g));
  const own = status.tables.filter(({ name }) => words.has(name.toLowerCase()));
  const states = own.map((table) => ({ table, state: tableState(table, status) }));
  const stale = states.filter(({ state }) => needsAction(state));
  const worst = stale.find(({ state }) => state.tone === "bad") ?? stale[0];
  if (!worst) return undefined;
  const { state, table } = worst;
  const job = state.action?.kind === "adapt" || state.action?.kind === "job" ? status.last_job?.job_id : undefined;
  const time = status.succeeded ? dataOf(status.succeeded) : "Earlier data";
  return {
    tone: state.tone,
    sentence: [
      own.some(hasData) ? time : "No data yet",
      job ? "the last run failed" : `${table.name}: ${state.label}`,
    ].join(" · "),
    table: table.name,
    job,
  };
}

/** CSVs in the pipeline's folder that no table reads. */
export function notRead({ not_read }: PipelineStatus): TableState | undefined {
  if (not_read.count === 0) return undefined;
  const are = not_read.count === 1 ? "isn't" : "aren't";
  return {
    tone: "warn",
    label: `${counted(not_read.count, "file")} not read`,
    sentence: `${counted(not_read.count, "CSV")} ${are} read by any table: ${named(not_read)}.`,
    action: { kind: "table", key: not_read.first[0] ?? "", words: "Add a table" },
  };
}
