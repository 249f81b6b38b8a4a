/** Content and order of cards. */
import { queryOptions } from "@tanstack/preact-query";
import { sendRaw } from "../../api/client";
import { isDraft } from "../../api/drafts";
import { IDLE_POLL_MS, client, keys, LIVE_MS } from "../../api/queries";
import type { PipelineDetail } from "../../api/types";
import { byTitle } from "../../api/titles";
import type { RunMark } from "../../runs/bars";

interface RecentRun {
  job_id: string;
  status: string;
  duration_ms: number | null;
  finished_at: string | null;
  rows_rejected: number | null;
}

/** With fields that newer services report. */
export type PipelineCard = PipelineDetail & { rows?: number | null; bytes?: number | null; recent?: RecentRun[] };

const RECENT_RUNS = 30;

interface Cards {
  pipelines: PipelineCard[];
  truncated: boolean;
}

export const isRunning = ({ last_job }: PipelineDetail): boolean =>
  last_job?.status === "running" || last_job?.status === "queued";

export const cardsQuery = () =>
  queryOptions({
    queryKey: keys.cards,
    queryFn: async ({ signal }): Promise<Cards> => {
      const response = await sendRaw(`/api/pipelines?details=1&recent=${String(RECENT_RUNS)}`, { signal });
      const cards = (await response.json()) as Cards;
      // Cards include the listing, which needs no request of its own.
      client.setQueryData<unknown>(keys.pipelines, cards);
      return cards;
    },
    select: (cards): Cards => ({ ...cards, pipelines: cards.pipelines.filter(({ slug }) => !isDraft(slug)) }),
    refetchInterval: (query) => (query.state.data?.pipelines.some(isRunning) ? 2 * LIVE_MS : IDLE_POLL_MS),
  });

export const marksOf = (card: PipelineCard): RunMark[] =>
  (card.recent ?? []).map((run) => ({
    jobId: run.job_id,
    status: run.status,
    durationMs: run.duration_ms,
    finishedAt: run.finished_at,
    rejected: run.rows_rejected ?? 0,
  }));

export type Sorting = "starred" | "name" | "last-run" | "rows" | "troubled";

export const SORTINGS: Record<Sorting, string> = {
  starred: "Starred first",
  name: "By name",
  "last-run": "By last run",
  rows: "By rows",
  troubled: "Failing first",
};

/** A pipeline that needs attention. */
export const needsAttention = (card: PipelineDetail): boolean =>
  (card.last_job?.status === "failed" && card.last_job.error !== "cancelled") || card.config !== "valid";

const lastRun = ({ last_job }: PipelineDetail): string => last_job?.finished_at ?? last_job?.enqueued_at ?? "";

const ORDERS: Record<Sorting, (starred: ReadonlySet<string>) => (a: PipelineCard, b: PipelineCard) => number> = {
  starred: (starred) => (a, b) => Number(starred.has(b.slug)) - Number(starred.has(a.slug)),
  name: () => () => 0,
  "last-run": () => (a, b) => lastRun(b).localeCompare(lastRun(a)),
  rows: () => (a, b) => (b.rows ?? -1) - (a.rows ?? -1),
  troubled: () => (a, b) => Number(needsAttention(b)) - Number(needsAttention(a)),
};

/** Cards whose slug or title contains every word of `search`, sorted. */
export function arranged(
  cards: PipelineCard[],
  search: string,
  sorting: Sorting,
  starred: readonly string[],
): PipelineCard[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const order = ORDERS[sorting](new Set(starred));
  return cards
    .filter((card) => {
      const text = `${card.slug} ${card.title ?? ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((a, b) => order(a, b) || byTitle(a, b));
}
