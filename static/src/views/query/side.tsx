import { useSignal } from "@preact/signals";
import { useQuery } from "@tanstack/preact-query";
import { savedQueriesQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Time } from "../../components/time";
import { count, counted } from "../../format/number";
import { duration } from "../../format/time";
import type { HistoryEntry } from "./history";
import { TableList } from "./tables";
import { replaceText, stateOf } from "./state";

const TABS = ["Tables", "Saved", "History"] as const;
type Tab = (typeof TABS)[number];

interface Props {
  slug: string;
  onInsert: (text: string) => void;
  /** A query was loaded into the editor. */
  onLoaded: () => void;
}

/** Sidebar: tables, saved queries and history. */
export function Side({ slug, onInsert, onLoaded }: Props) {
  const tab = useSignal<Tab>("Tables");
  const move = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = TABS[(TABS.indexOf(tab.value) + step + TABS.length) % TABS.length] ?? "Tables";
    tab.value = next;
    event.currentTarget.querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  };
  return (
    <>
      <div class="query-tabs" role="tablist" aria-label="Sidebar section" onKeyDown={move}>
        {TABS.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            data-tab={name}
            aria-selected={tab.value === name}
            tabIndex={tab.value === name ? 0 : -1}
            onClick={() => (tab.value = name)}
          >
            {name}
          </button>
        ))}
      </div>
      <div class="query-panel" role="tabpanel" aria-label={tab.value}>
        {tab.value === "Tables" && <TableList slug={slug} onInsert={onInsert} />}
        {tab.value === "Saved" && <SavedList slug={slug} onLoaded={onLoaded} />}
        {tab.value === "History" && <HistoryList slug={slug} onLoaded={onLoaded} />}
      </div>
    </>
  );
}

function SavedList({ slug, onLoaded }: { slug: string; onLoaded: () => void }) {
  const { data, error, refetch } = useQuery(savedQueriesQuery(slug));
  const { saved } = stateOf(slug);
  if (error && !data)
    return <Failed title="Couldn't load the saved queries" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton />;
  if (data.queries.length === 0) {
    return (
      <Empty title="No saved queries yet">Save a query to reuse it and share it with everyone on this pipeline.</Empty>
    );
  }
  return (
    <ul class="query-list">
      {data.queries.map((query) => (
        <li key={query.id}>
          <button
            type="button"
            aria-current={query.id === saved.value}
            title={query.sql}
            onClick={() => {
              replaceText(slug, query.sql, data.queries, query.id);
              onLoaded();
            }}
          >
            <span class="cut">{query.name}</span>
            <small class="dim">
              saved <Time at={query.updated_at} />
            </small>
          </button>
        </li>
      ))}
    </ul>
  );
}

function ending({ status, ms, rows }: HistoryEntry) {
  if (status === "set aside") return "not run";
  const took = ms === undefined ? "" : ` · ${duration(ms)}`;
  if (status !== "done") return <span class={status === "failed" ? "query-failed" : ""}>{`${status}${took}`}</span>;
  return <span title={counted(rows ?? 0, "row")}>{`${count(rows ?? 0)} ${rows === 1 ? "row" : "rows"}${took}`}</span>;
}

function HistoryList({ slug, onLoaded }: { slug: string; onLoaded: () => void }) {
  const { past } = stateOf(slug);
  const { data } = useQuery(savedQueriesQuery(slug));
  if (past.value.length === 0) {
    return <Empty title="No queries yet">The last 100 queries in this browser are listed here.</Empty>;
  }
  return (
    <>
      <ul class="query-list">
        {past.value.map((one) => (
          <li key={`${one.at} ${one.sql}`}>
            <button
              type="button"
              title={one.sql}
              onClick={() => {
                replaceText(slug, one.sql, data?.queries ?? []);
                onLoaded();
              }}
            >
              <span class="query-past mono">{one.sql.trim()}</span>
              <small class="dim">
                <Time at={one.at} /> · {ending(one)}
              </small>
            </button>
          </li>
        ))}
      </ul>
      <div class="query-clear">
        <Button variant="quiet" onClick={() => (past.value = [])}>
          Clear history
        </Button>
      </div>
    </>
  );
}
