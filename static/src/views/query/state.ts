/**
 * State of a pipeline's query view; queries and results survive navigation.
 *
 * Invariant: no text is lost when it is replaced; unsaved text goes into the history.
 */
import { effect, signal, type Signal } from "@preact/signals";
import { api, ask } from "../../api/client";
import { asFailure, type ApiFailure } from "../../api/failure";
import { freshId } from "../../api/id";
import { session } from "../../api/session";
import type { QueryAnswer, SavedQuery } from "../../api/types";
import type { ChartChoice } from "../../boards/builder/choice";
import { toast } from "../../components/toasts";
import { isString, persisted, persistedAcrossTabs } from "../../browser/persisted";
import { isUnsaved, isHistory, remember, type EntryStatus, type HistoryEntry } from "./history";

/** Row limit of results, as in the service. */
export const ROWS_MAX = 10_000;
/** Cancellation may precede the registration of the query in the service, so it is retried. */
const CANCEL_TRIES = 8;
const CANCEL_AGAIN_MS = 250;

interface RunRequest {
  sql: string;
  /** The editor's text at that time, and the offset of the statement in it (undefined: unknown). */
  text: string;
  from: number | undefined;
}

interface Running extends RunRequest {
  id: string;
  since: number;
  cancelling: boolean;
}

export type Outcome = RunRequest & { ms: number } & (
    { answer: QueryAnswer; failure?: undefined } | { failure: ApiFailure; answer?: undefined }
  );

export interface QueryState {
  text: Signal<string>;
  /** ID of the open saved query; empty: none. */
  saved: Signal<string>;
  /** SQL of the saved query when it was opened or last saved. */
  base: Signal<string>;
  past: Signal<HistoryEntry[]>;
  running: Signal<Running | undefined>;
  outcome: Signal<Outcome | undefined>;
  shown: Signal<"grid" | "chart" | "columns">;
  /** The user's chart settings; undefined: guessed. */
  chart: Signal<ChartChoice | undefined>;
}

const states = new Map<string, QueryState>();

effect(() => {
  if (session.state.value === "out") states.clear();
});

export function stateOf(slug: string): QueryState {
  const known = states.get(slug);
  if (known) return known;
  const made: QueryState = {
    text: persisted(`query.text.${slug}`, "", isString),
    saved: persisted(`query.saved.${slug}`, "", isString),
    base: persisted(`query.base.${slug}`, "", isString),
    past: persistedAcrossTabs<HistoryEntry[]>(`query.history.${slug}`, [], isHistory),
    running: signal(undefined),
    outcome: signal(undefined),
    shown: signal("grid"),
    chart: signal(undefined),
  };
  states.set(slug, made);
  return made;
}

/** The statement to run: the selection, else the whole text. `cursor` is at one of its ends. */
export function statementToRun(text: string, selection: string, cursor: number): RunRequest {
  if (!selection.trim()) return { sql: text, text, from: 0 };
  const from = [cursor - selection.length, cursor].find((at) => at >= 0 && text.startsWith(selection, at));
  return { sql: selection, text, from };
}

function sameColumns(a: QueryAnswer | undefined, b: QueryAnswer): boolean {
  const names = (answer: QueryAnswer) => answer.columns.map(({ name, type }) => `${name}:${type}`).join("\n");
  return a !== undefined && names(a) === names(b);
}

function note(state: QueryState, asked: RunRequest, status: EntryStatus, more: { ms?: number; rows?: number }): void {
  state.past.value = remember(state.past.value, { sql: asked.sql, at: new Date().toISOString(), status, ...more });
}

/** Runs one statement at a time. */
export async function run(slug: string, asked: RunRequest): Promise<void> {
  const state = stateOf(slug);
  if (state.running.value || !asked.sql.trim()) return;
  const id = freshId();
  const since = performance.now();
  state.running.value = { ...asked, id, since, cancelling: false };
  try {
    const body = { sql: asked.sql, limit: ROWS_MAX, query_id: id };
    const answer = await ask(api.POST("/api/p/{pipeline}/query", { params: { path: { pipeline: slug } }, body }));
    if (!sameColumns(state.outcome.value?.answer, answer)) state.chart.value = undefined;
    state.outcome.value = { ...asked, ms: answer.elapsed_ms, answer };
    note(state, asked, "done", { ms: answer.elapsed_ms, rows: answer.row_count });
  } catch (error) {
    const failure = asFailure(error);
    const ms = Math.round(performance.now() - since);
    state.outcome.value = { ...asked, ms, failure };
    note(state, asked, failure.code === "query_cancelled" ? "cancelled" : "failed", { ms });
  } finally {
    state.running.value = undefined;
  }
}

/** Cancels the query, which ends with its response. */
export async function cancel(slug: string): Promise<void> {
  const { running } = stateOf(slug);
  const one = running.value;
  if (!one || one.cancelling) return;
  running.value = { ...one, cancelling: true };
  const stillRuns = () => running.value?.id === one.id;
  for (let tries = 1; stillRuns(); tries += 1) {
    try {
      const path = { params: { path: { pipeline: slug } }, body: { query_id: one.id } };
      await ask(api.POST("/api/p/{pipeline}/query/cancel", path));
      return;
    } catch (error) {
      const unknown = asFailure(error).code === "query_not_found";
      if (!unknown || tries >= CANCEL_TRIES) {
        if (stillRuns()) {
          running.value = { ...one, cancelling: false };
          toast.failed("Couldn't cancel the query", error);
        }
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, CANCEL_AGAIN_MS));
    }
  }
}

/** Replaces the editor's text. */
export function replaceText(slug: string, sql: string, queries: readonly SavedQuery[], saved = ""): void {
  const state = stateOf(slug);
  const before = state.text.value;
  if (before !== sql && isUnsaved(before, state.past.value, queries)) {
    note(state, { sql: before, text: before, from: 0 }, "set aside", {});
  }
  state.text.value = sql;
  state.saved.value = saved;
  state.base.value = saved ? sql : "";
}
