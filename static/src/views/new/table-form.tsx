import { keepPreviousData, useQueries } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Previewed } from "../../api/types";
import { Section } from "../../components/page";
import { Failed, Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { ColumnsStep } from "./columns";
import {
  changed,
  columnProblems,
  configOf,
  changesColumns,
  draftOf,
  mappingOf,
  tableProblem,
  withNulls,
  type Draft,
  type DraftColumn,
} from "./draft";
import { formatLine, FormatStep } from "./format";
import { TableNaming } from "./naming";
import { checkedOf, type Checked } from "../../tables/checked";
import { previewOf } from "../../tables/preview";
import { LastRows, PreviewStep } from "./preview";
import { PREVIEW_ROWS, type Ready } from "./proposal";
import { changedByUser, recut, stagedGlob } from "./recut";
import type { Staged } from "./staging";

/** A table as it is proposed now. */
export interface TableDraft {
  draft: Draft;
  mapping: (files: string[]) => Record<string, unknown>;
  /** Why a run would fail; undefined if it can run. */
  blocked: string | undefined;
}

/** Rows of the piece at a file's end. */
const TAIL_ROWS = 1000;
/** Rejected rows of other files that are shown. */
const OTHER_ROWS = 10;
/** Delay before a preview, in milliseconds. */
const DEBOUNCE_MS = 300;

interface Props {
  proposal: Ready;
  /** A name for the table, instead of the proposed one. */
  name: string | undefined;
  taken: ReadonlySet<string>;
  locked: boolean;
  /** The table's files are where its name says. */
  nameLocked: boolean;
  onDraft: (table: TableDraft) => void;
}

/** One table: its data first, then the format, the columns, and its name. */
export function TableForm({ proposal, name, taken, locked, nameLocked, onDraft }: Props) {
  const { inferred, staged, samples, complete } = proposal;
  const [draft, setDraft] = useState<Draft>(() => {
    const proposed = draftOf(inferred);
    return { ...proposed, table: freeTable(name ?? proposed.table, taken) };
  });
  const [cutting, setCutting] = useState(false);
  // Columns of the last split, and the user's changes to any column.
  const cuts = useRef({ round: 0, cut: draft.columns, own: [] as DraftColumn[] });
  const put = (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change }));
  const wanted = samples.map((sample, at) => ({ sample, rows: at === 0 ? PREVIEW_ROWS : OTHER_ROWS }));
  const previews = usePreviews(draft, proposal, wanted);
  const [preview] = previews;
  const [last] = usePreviews(draft, proposal, proposal.tail ? [{ sample: proposal.tail, rows: TAIL_ROWS }] : []);
  const problems = serviceProblems(preview?.data, draft);
  const checking = previews.some((one) => one.isPending || one.isPlaceholderData) || cutting;
  const error = previews.find((one) => one.error)?.error;
  const checked = checkedOf(
    samples,
    previews.map(({ data }) => data),
  );
  const unreadable = inferred.files_failed.map(
    ({ key, message }) => `${samples.find((one) => one.key === key)?.name ?? key}: ${message}`,
  );
  const blocked =
    unreadable.length > 0
      ? "Choose the files again, without those that can't be read."
      : blockedBy(draft, taken, preview?.data, checked, checking, error);

  const latest = useRef(onDraft);
  latest.current = onDraft;
  useEffect(() => {
    latest.current({ draft, mapping: (files) => mappingOf(draft, inferred, files), blocked });
  }, [draft, inferred, blocked]);

  const change = (item: string, value: unknown) => {
    const dialect = changed(draft.dialect, item, value);
    put(item === "null_values" ? { dialect, columns: withNulls(draft.columns, dialect) } : { dialect });
    if (!changesColumns(item)) return;
    const { cut, own } = cuts.current;
    const round = (cuts.current.round += 1);
    // Ignores outdated responses.
    const isLast = () => cuts.current.round === round;
    cuts.current.own = changedByUser(draft.columns, cut, own);
    setCutting(true);
    recut(staged, dialect, cuts.current.own, draftOf(inferred).columns)
      .then(
        (columns) => {
          if (!isLast()) return;
          cuts.current.cut = columns;
          put({ columns });
        },
        (error: unknown) => {
          if (isLast()) toast.failed("Couldn't apply the setting", error);
        },
      )
      .finally(() => {
        if (isLast()) setCutting(false);
      });
  };

  return (
    <>
      <Section
        title="Data"
        actions={
          <span class="dim" role="status">
            {checking ? "Loading the preview" : ""}
          </span>
        }
      >
        {unreadable.map((text) => (
          <Note key={text} tone="bad">
            {text}
          </Note>
        ))}
        {error ? (
          <Failed
            title="No preview"
            error={error}
            onRetry={() => previews.forEach((one) => one.error && void one.refetch())}
          />
        ) : (
          <PreviewStep
            previewed={preview?.data}
            checked={checked}
            complete={complete}
            stale={checking}
            dialect={draft.dialect}
            columns={draft.columns}
          />
        )}
        {last?.data && <LastRows previewed={last.data} dialect={draft.dialect} columns={draft.columns} />}
        <details class="new-format">
          <summary>
            <strong>Detected format</strong>{" "}
            <span class="secondary">{formatLine(inferred, draft.dialect, complete)}</span>
          </summary>
          <FormatStep
            inferred={inferred}
            complete={complete}
            dialect={draft.dialect}
            locked={locked}
            busy={cutting}
            onChange={change}
          />
        </details>
      </Section>
      <Section title={counted(draft.columns.length, "column")}>
        <ColumnsStep
          columns={draft.columns}
          problems={problems.byColumn}
          locked={locked}
          onChange={(columns) => put({ columns })}
        />
        {problems.other.map((text) => (
          <Note key={text} tone="bad">
            {text}
          </Note>
        ))}
      </Section>
      <Section title="Table">
        <TableNaming
          draft={draft}
          inferred={inferred}
          taken={taken}
          locked={locked}
          nameLocked={nameLocked}
          onChange={put}
        />
      </Section>
    </>
  );
}

function freeTable(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let suffix = 2; taken.has(free); suffix += 1) free = `${name}_${suffix}`;
  return free;
}

/** Why the table can't be created as it is; undefined if it can. */
export function blockedBy(
  draft: Draft,
  taken: ReadonlySet<string>,
  previewed: Previewed | undefined,
  checked: Checked | undefined,
  checking: boolean,
  error: unknown,
): string | undefined {
  const named = tableProblem(draft.table, taken);
  if (named !== undefined) return named;
  if (columnProblems(draft.columns).size > 0) return "Fix the names of the columns.";
  if (!draft.columns.some(({ included }) => included)) return "Include at least one column.";
  if (error) return "The preview couldn't be loaded, so it isn't known whether a run would succeed.";
  if (checking || !previewed || !checked) return "Checking whether a run would succeed.";
  if (previewed.problems.length > 0) return previewed.problems[0]?.message ?? "The settings have problems.";
  if (checked.failure !== undefined) return `A run would fail: ${checked.failure}`;
  const { rejected, read } = checked;
  if (rejected > 0 && rejected > read * draft.rejectsMax)
    return `${counted(rejected, "row")} of ${read.toLocaleString("en-US")} would be rejected, more than allowed, so a run would fail. Fix the columns, or allow rejected rows.`;
  return undefined;
}

/** Previews of staged files; the previous ones are shown while loading. */
function usePreviews(draft: Draft, { inferred }: Ready, wanted: { sample: Staged; rows: number }[]) {
  const table = tableProblem(draft.table) ? "sample" : draft.table;
  const form = { ...draft, table, partition: -1, sorted: false, rejectsMax: 1 };
  const textOf = (sample: Staged) => JSON.stringify(configOf("", [mappingOf(form, inferred, [stagedGlob(sample)])]));
  const text = wanted.map(({ sample }) => textOf(sample)).join("\n");
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const texts = settled.split("\n");
  const previews = useQueries({
    queries: wanted.map(({ sample, rows }, at) => ({
      queryKey: ["preview", sample.key, rows, texts[at]],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        previewOf(
          sample.slug,
          { config: JSON.parse(texts[at] ?? textOf(sample)) as unknown, key: sample.key, limit: rows },
          signal,
        ),
      placeholderData: keepPreviousData,
      staleTime: Infinity,
      refetchOnWindowFocus: false,
    })),
  });
  return previews.map((query) => ({
    ...query,
    isPlaceholderData: query.isPlaceholderData || settled !== text,
  }));
}

/** The config's problems; those of columns by column. */
function serviceProblems(
  previewed: Previewed | undefined,
  { columns }: Draft,
): { byColumn: Map<number, string>; other: string[] } {
  const byColumn = new Map<number, string>();
  const other: string[] = [];
  const taken = columns.filter(({ included }) => included);
  for (const { path, message } of previewed?.problems ?? []) {
    const at = /^\/mappings\/0\/columns\/(\d+)/.exec(path)?.[1];
    const column = at === undefined ? undefined : taken[Number(at)];
    if (column) byColumn.set(column.id, message);
    else other.push(message);
  }
  return { byColumn, other };
}
