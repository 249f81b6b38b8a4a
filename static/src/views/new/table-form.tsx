import { keepPreviousData, useQuery } from "@tanstack/preact-query";
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
  cutsAnew,
  draftOf,
  mappingOf,
  tableProblem,
  withNulls,
  type Draft,
  type DraftColumn,
} from "./draft";
import { formatLine, FormatStep } from "./format";
import { TableNaming } from "./naming";
import { LastRows, PreviewStep } from "./preview";
import type { Proposal } from "./proposal";
import { ownOf, previewOf, recut, stagedGlob } from "./recut";
import { keepAlive, release, stageTail, type Source, type Staged } from "./staging";

type Ready = Extract<Proposal, { phase: "ready" }>;

/** A table as it is proposed now. */
export interface TableDraft {
  draft: Draft;
  mapping: (files: string[]) => Record<string, unknown>;
  /** Why a run would fail; undefined if it can run. */
  blocked: string | undefined;
}

const PREVIEW_ROWS = 50;
const TAIL_ROWS = 500;
/** Delay before a preview, in milliseconds. */
const PAUSE_MS = 300;

interface Props {
  source: Source;
  proposal: Ready;
  /** A name for the table, instead of the proposed one. */
  name: string | undefined;
  taken: ReadonlySet<string>;
  locked: boolean;
  onDraft: (table: TableDraft) => void;
}

/** One table: its data first, then the format, the columns, and its name. */
export function TableForm({ source, proposal, name, taken, locked, onDraft }: Props) {
  const { inferred, staged } = proposal;
  const [draft, setDraft] = useState<Draft>(() => {
    const proposed = draftOf(inferred);
    return { ...proposed, table: freeTable(name ?? proposed.table, taken) };
  });
  const [cutting, setCutting] = useState(false);
  // Columns of the last split, and the user's changes to any column.
  const cuts = useRef({ round: 0, cut: draft.columns, own: [] as DraftColumn[] });
  const put = (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change }));
  const preview = usePreview(draft, proposal, staged, PREVIEW_ROWS);
  const tail = useTail(source, proposal);
  const last = usePreview(draft, proposal, tail, TAIL_ROWS);
  const problems = serviceProblems(preview.data, draft);
  const checking = preview.isPending || preview.isPlaceholderData || cutting;
  const blocked = blockedBy(draft, taken, preview.data, checking, preview.error);

  const latest = useRef(onDraft);
  latest.current = onDraft;
  useEffect(() => {
    latest.current({ draft, mapping: (files) => mappingOf(draft, inferred, files), blocked });
  }, [draft, inferred, blocked]);

  const change = (item: string, value: unknown) => {
    const dialect = changed(draft.dialect, item, value);
    put(item === "null_values" ? { dialect, columns: withNulls(draft.columns, dialect) } : { dialect });
    if (!cutsAnew(item)) return;
    const { cut, own } = cuts.current;
    const round = (cuts.current.round += 1);
    // Ignores outdated responses.
    const isLast = () => cuts.current.round === round;
    cuts.current.own = ownOf(draft.columns, cut, own);
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
        {preview.error ? (
          <Failed title="No preview" error={preview.error} onRetry={() => void preview.refetch()} />
        ) : (
          <PreviewStep
            previewed={preview.data}
            stale={preview.isPlaceholderData || cutting}
            dialect={draft.dialect}
            columns={draft.columns}
          />
        )}
        {last.data && <LastRows previewed={last.data} dialect={draft.dialect} columns={draft.columns} />}
        <details class="new-format">
          <summary>
            <strong>Detected format</strong> <span class="secondary">{formatLine(inferred, draft.dialect)}</span>
          </summary>
          <FormatStep inferred={inferred} dialect={draft.dialect} locked={locked} busy={cutting} onChange={change} />
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
        <TableNaming draft={draft} inferred={inferred} taken={taken} locked={locked} onChange={put} />
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
  checking: boolean,
  error: unknown,
): string | undefined {
  const named = tableProblem(draft.table, taken);
  if (named !== undefined) return named;
  if (columnProblems(draft.columns).size > 0) return "Fix the names of the columns.";
  if (!draft.columns.some(({ included }) => included)) return "Include at least one column.";
  if (error) return "The preview couldn't be loaded, so it isn't known whether a run would succeed.";
  if (checking || !previewed) return "Checking whether a run would succeed.";
  if (previewed.problems.length > 0) return previewed.problems[0]?.message ?? "The settings have problems.";
  if (previewed.failure) return `A run would fail: ${previewed.failure.message}`;
  const { rows_rejected: rejected = 0, rows_read: read = 0 } = previewed.counts ?? {};
  if (rejected > 0 && rejected > read * draft.rejectsMax)
    return `${counted(rejected, "row")} of ${read.toLocaleString("en-US")} would be rejected, more than allowed, so a run would fail. Fix the columns, or allow rejected rows.`;
  return undefined;
}

/** The end of a local file, staged while the form is there. */
function useTail(source: Source, { staged, inferred }: Ready): Staged | undefined {
  const [tail, setTail] = useState<Staged>();
  const file = source.kind === "files" ? source.files[0] : undefined;
  const isLong = inferred.sample.rows_read > PREVIEW_ROWS;
  const { csv } = inferred;
  useEffect(() => {
    if (!file || !isLong) return undefined;
    let letGo: () => void = () => undefined;
    let ended = false;
    stageTail(file, staged, csv).then(
      (made) => {
        if (!made) return;
        if (ended) return void release(made);
        const stop = keepAlive(made);
        letGo = () => {
          stop();
          void release(made);
        };
        setTail(made);
      },
      // The last rows are a help; without them the rest is as good.
      () => undefined,
    );
    return () => {
      ended = true;
      letGo();
    };
  }, [file, isLong, staged, csv]);
  return tail;
}

/** Preview of a staged file; the previous one is shown while loading. */
function usePreview(draft: Draft, { inferred }: Ready, staged: Staged | undefined, rows: number) {
  const table = tableProblem(draft.table) ? "sample" : draft.table;
  const files = staged ? [stagedGlob(staged)] : [];
  const mapping = mappingOf({ ...draft, table, partition: -1, sorted: false, rejectsMax: 1 }, inferred, files);
  const text = JSON.stringify(configOf("", [mapping]));
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const query = useQuery({
    queryKey: ["preview", staged?.key, rows, settled],
    queryFn: ({ signal }) => {
      if (!staged) throw new Error("nothing is staged");
      return previewOf(staged, JSON.parse(settled), rows, signal);
    },
    enabled: staged !== undefined,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
  return { ...query, isPlaceholderData: query.isPlaceholderData || settled !== text };
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
