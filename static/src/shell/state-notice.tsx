import { useQueries, useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { isPaused, pausesQuery } from "../api/pauses";
import { IDLE_POLL_MS, jobsQuery, lineageQuery, pipelinesQuery, statusQuery } from "../api/queries";
import type { Table } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { MessageText } from "../components/message-text";
import { Failed, Note, Skeleton } from "../components/states";
import { Badge } from "../components/status";
import { Countdown } from "../components/time";
import { routes } from "../browser/routes";
import {
  actionsOf,
  extraColumns,
  needsAction,
  pipelineState,
  succeededAt,
  tableStates,
  type KnownStatus,
  type StateAction,
} from "../runs/table-state";
import { AdaptDialog, titleOf } from "../tables/adapt";
import { CleanRun, useRun } from "./pipeline";
import { askForFiles } from "./upload-request";

/** The button of a state's next step. */
export function StateButton({ slug, action, first }: { slug: string; action: StateAction; first?: boolean }) {
  const { run, busy } = useRun(slug);
  const [asking, setAsking] = useState(false);
  switch (action.kind) {
    case "run":
      return (
        <Button variant={first ? "primary" : "plain"} busy={busy} onClick={() => void run(false)}>
          {action.words}
        </Button>
      );
    case "clean":
      return (
        <>
          <Button busy={busy} onClick={() => setAsking(true)}>
            {action.words}
          </Button>
          {asking && (
            <CleanRun
              slug={slug}
              onClose={() => setAsking(false)}
              onConfirm={() => {
                setAsking(false);
                void run(true);
              }}
            />
          )}
        </>
      );
    case "upload":
      return (
        <Button variant={first ? "primary" : "plain"} onClick={() => askForFiles(slug)}>
          {action.words}
        </Button>
      );
    case "config":
      return (
        <Link class="button" href={`~${routes.config(slug)}`}>
          {action.words}
        </Link>
      );
    case "table":
      return (
        <Link class="button" href={`~${routes.fromCsv({ key: `pipelines/${slug}/${action.key}` })}`}>
          {action.words}
        </Link>
      );
    case "adapt":
      return (
        <>
          <Button variant={first ? "primary" : "plain"} onClick={() => setAsking(true)}>
            {action.words}
          </Button>
          {asking && (
            <AdaptDialog
              slug={slug}
              table={action.table}
              files={action.files}
              job={action.job}
              onClose={() => setAsking(false)}
              onSaved={() => void run(false)}
            />
          )}
        </>
      );
    case "job":
      return (
        <Link class="button" href={`~${routes.job(slug, action.id)}`}>
          {action.words}
        </Link>
      );
  }
}

/** When a run starts by itself: not where runs are manual or paused. */
export function useDue(slug: string): string | undefined {
  const { data: listed } = useQuery(pipelinesQuery());
  const { data: pauses } = useQuery(pausesQuery());
  const detail = listed?.pipelines.find((one) => one.slug === slug);
  const isManual = detail?.auto_run === false && detail.last_job?.status !== "queued";
  return isManual || isPaused(pauses, slug) ? undefined : (detail?.next_due ?? undefined);
}

/** The status, with the end of the last successful run, and whether another is due. */
export function useKnownStatus(slug: string): KnownStatus | undefined {
  const { data: status } = useQuery(statusQuery(slug));
  const { data: pauses } = useQuery(pausesQuery());
  const failed = status?.last_job?.status === "failed";
  const due = useDue(slug) !== undefined;
  const held = status?.active === true && isPaused(pauses, slug);
  const { data: listed } = useQuery({ ...jobsQuery(slug), enabled: failed || held });
  // A job that waits for the end of a pause loads nothing.
  const waits = held && listed?.jobs.some((job) => job.status === "running") === false;
  return status && { ...status, active: status.active && !waits, due, succeeded: succeededAt(status, listed?.jobs) };
}

/** Notice why a table isn't up to date, or why the pipeline isn't; nothing if it is. */
export function StateNotice({ slug, table }: { slug: string; table?: string }) {
  const status = useKnownStatus(slug);
  const next = useDue(slug);
  if (!status) return null;
  const own = status.tables.find(({ name }) => name === table);
  const states = own ? tableStates(own, status).filter(needsAction) : [];
  const [first] = states;
  const whole = table === undefined ? pipelineState(status) : undefined;
  const shown =
    whole ?? (first && { ...first, more: states.slice(1).map(({ sentence }) => sentence), actions: actionsOf(states) });
  if (!shown) return null;
  const due = status.active ? undefined : next;
  return (
    <Note tone={shown.tone}>
      <div class="row wrap state-notice">
        <span class="grow">
          <MessageText text={shown.sentence} /> <MessageText text={shown.more.join(" ")} />{" "}
          {due && (
            <>
              A run starts <Countdown to={due} />.
            </>
          )}
        </span>
        <span class="row wrap">
          {shown.actions.map((action) => (
            <StateButton key={action.words} slug={slug} action={action} />
          ))}
        </span>
      </div>
    </Note>
  );
}

/** Badge of a table that isn't up to date. */
export function TableBadge({ slug, table }: { slug: string; table: string }) {
  const status = useKnownStatus(slug);
  const own = status?.tables.find(({ name }) => name === table);
  const [state] = own && status ? tableStates(own, status) : [];
  if (!state || state.tone === "ok") return null;
  return (
    <Badge tone={state.tone} title={state.sentence}>
      {state.label}
    </Badge>
  );
}

/** Badge of a pipeline whose tables aren't all up to date. */
export function PipelineBadge({ slug }: { slug: string }) {
  const { data: status } = useQuery({ ...statusQuery(slug), refetchInterval: 6 * IDLE_POLL_MS });
  const state = status && pipelineState(status);
  if (!state) return null;
  return (
    <Badge tone={state.tone} title={[state.sentence, ...state.more].join(" ")}>
      {state.label}
    </Badge>
  );
}

/** Notice of columns in the CSVs that the config doesn't have. */
export function ExtraColumnsNotice({ slug, table }: { slug: string; table: Table }) {
  const [asking, setAsking] = useState(false);
  const text = extraColumns(table);
  if (text === undefined) return null;
  const names = (table.extra_columns ?? []).map(({ name }) => name);
  return (
    <Note>
      <div class="row wrap">
        <span class="grow">{text}</span>
        <Button onClick={() => setAsking(true)}>{names.length === 1 ? "Add column…" : "Add columns…"}</Button>
      </div>
      {asking && <AddColumns slug={slug} table={table.name} names={names} onClose={() => setAsking(false)} />}
    </Note>
  );
}

/** Maximum number of columns whose files are loaded, and of files per column. */
const NAMES_MAX = 4;
const FILES_EACH = 2;

/** Finds files that have the columns, and proposes them. */
function AddColumns(props: { slug: string; table: string; names: string[]; onClose: () => void }) {
  const { slug, table, names, onClose } = props;
  const { run } = useRun(slug);
  const found = useQueries({
    queries: names
      .slice(0, NAMES_MAX)
      .map((name) => lineageQuery(slug, table, { extra_column: name, limit: FILES_EACH })),
  });
  const error = found.find((one) => one.error)?.error;
  const sources = found.flatMap(({ data }) => data?.sources ?? []);
  const files = [...new Set(sources.filter(({ archived }) => !archived).map(({ key }) => key))];
  if (error || found.some((one) => one.isPending) || files.length === 0)
    return (
      <Dialog title={titleOf(table, names)} onClose={onClose}>
        {error ? (
          <Failed title="Couldn't find the files of the columns" error={error} />
        ) : found.some((one) => one.isPending) ? (
          <Skeleton lines={4} label="Looking for files with the columns" />
        ) : (
          <Note>The CSVs with these columns are no longer in the lake. Add the columns in the config.</Note>
        )}
      </Dialog>
    );
  return (
    <AdaptDialog
      slug={slug}
      table={table}
      files={files}
      columns={names}
      onClose={onClose}
      onSaved={() => void run(false)}
    />
  );
}
