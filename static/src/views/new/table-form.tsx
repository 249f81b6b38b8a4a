import { keepPreviousData, useQueries } from "@tanstack/preact-query";
import type { ComponentChild } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Previewed } from "../../api/types";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { Failed, Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { sentence } from "../../format/text";
import { count, counted } from "../../format/number";
import { MessageText } from "../../components/message-text";
import { ColumnsStep } from "./columns";
import {
  columnProblems,
  concernsOf,
  configOf,
  draftOf,
  mappingOf,
  tableProblem,
  withNulls,
  type Concern,
  type Draft,
  type DraftColumn,
  type DraftVariant,
} from "./draft";
import { FormatDetails, formatLine } from "./format";
import { linesBeforeHeader } from "../../uploads/file-head";
import { nameOf } from "../../uploads/keys";
import { firstLines } from "./first-lines";
import { TableNaming } from "./naming";
import { PathColumns } from "./path-columns";
import { checkedOf, type Checked } from "../../tables/checked";
import { changed, changesColumns, formatText, itemOf, type Dialect } from "../../tables/dialect";
import { newPathColumn, wordsOfNames } from "../../tables/path-columns";
import { previewOf } from "../../tables/preview";
import { LastRows, PreviewStep } from "./preview";
import { namesOfVariant, PREVIEW_ROWS, type Ready } from "./proposal";
import { changedByUser, recut } from "./recut";
import { stagedGlob, type Source, type Staged } from "../../uploads/staging";

/** A table as it is proposed now. */
export interface TableDraft {
  draft: Draft;
  /** `globsOf`: the globs of files by their names. */
  mapping: (files: string[], globsOf: (names: string[]) => string[]) => Record<string, unknown>;
  /** The settings of the file of this name. */
  dialectOf: (name: string) => Dialect;
  /** Why a run would fail; undefined if it can run. */
  blocked: string | undefined;
  /** Columns to look at before the table is created. */
  concerns: Concern[];
}

/** Rows of the piece at a file's end. */
const TAIL_ROWS = 1000;
/** Rejected rows of other files that are shown. */
const OTHER_ROWS = 10;
/** Delay before a preview, in milliseconds. */
const DEBOUNCE_MS = 300;
/** Words of file names that are proposed as the values of a column. */
const WORDS_MAX = 12;

interface Props {
  source: Source;
  proposal: Ready;
  /** A name for the table, instead of the proposed one. */
  name: string | undefined;
  taken: ReadonlySet<string>;
  locked: boolean;
  /** The name can't be changed: the table's files are in the folder of that name. */
  nameLocked: boolean;
  onDraft: (table: TableDraft) => void;
}

/** One table: its data first, then the format, the columns, and its name. */
export function TableForm({ source, proposal, name, taken, locked, nameLocked, onDraft }: Props) {
  const { inferred, staged, samples, complete } = proposal;
  const namesOfSource = useMemo(
    () => (source.kind === "files" ? source.files.map(({ name }) => name) : [nameOf(source.key)]),
    [source],
  );
  const words = useMemo(() => wordsOfNames(namesOfSource), [namesOfSource]);
  const [draft, setDraft] = useState<Draft>(() => {
    const proposed = draftOf(inferred);
    return { ...proposed, table: freeTable(name ?? proposed.table, taken) };
  });
  const [inferredDialect] = useState(draft.dialect);
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
    const namesOf = ({ keys }: DraftVariant) => namesOfVariant(source, samples, keys);
    latest.current({
      draft,
      mapping: (files, globsOf) => mappingOf(draft, inferred, files, (variant) => globsOf(namesOf(variant))),
      dialectOf: (file) => draft.variants.find((variant) => namesOf(variant).includes(file))?.dialect ?? draft.dialect,
      blocked,
      concerns: concernsOf(draft.columns, inferred),
    });
  }, [source, samples, draft, inferred, blocked]);

  // Samples in the table's own format.
  const isOfTable = ({ key }: Staged) => !draft.variants.some(({ keys }) => keys.includes(key));
  const namesOfMain = () => {
    const others = new Set(draft.variants.flatMap(({ keys }) => namesOfVariant(source, samples, keys)));
    return namesOfSource.filter((name) => !others.has(name));
  };
  const changeVariant = (at: number, item: string, value: unknown) => {
    const with_ = (variant: DraftVariant) => ({ ...variant, dialect: changed(variant.dialect, item, value) });
    put({ variants: draft.variants.map((variant, nth) => (nth === at ? with_(variant) : variant)) });
  };
  const change = (item: string, value: unknown) => {
    let dialect = changed(draft.dialect, item, value);
    // The number of lines before the header is about a header.
    if (item === "skip_rows" && value !== itemOf(draft.dialect, item)) dialect = changed(dialect, "header", true);
    put(item === "null_values" ? { dialect, columns: withNulls(draft.columns, dialect) } : { dialect });
    if (changesColumns(item)) split(dialect);
  };
  const split = (dialect: Dialect) => {
    const { cut, own } = cuts.current;
    const round = (cuts.current.round += 1);
    // Ignores outdated responses.
    const isLast = () => cuts.current.round === round;
    cuts.current.own = changedByUser(draft.columns, cut, own);
    setCutting(true);
    recut(samples.filter(isOfTable), dialect, cuts.current.own, draftOf(inferred).columns)
      .then(
        ({ columns, partial }) => {
          if (!isLast()) return;
          cuts.current.cut = columns;
          put({ columns, partial });
        },
        (error: unknown) => {
          if (isLast()) toast.failed("Couldn't apply the setting", error);
        },
      )
      .finally(() => {
        if (isLast()) setCutting(false);
      });
  };

  // A header that the proposal didn't find, below lines of text.
  useEffect(() => {
    const { dialect } = draftOf(inferred);
    if (!isOfTable(staged)) return;
    if (itemOf(dialect, "header") === true && itemOf(dialect, "skip_rows") !== 0) return;
    firstLines(staged, dialect).then(
      (lines) => {
        const delimiter = String(itemOf(dialect, "delimiter"));
        const before = linesBeforeHeader(lines, delimiter, itemOf(dialect, "quote") as string | null);
        if (before === undefined || cuts.current.round > 0) return;
        const found = changed(changed(dialect, "skip_rows", before), "header", true);
        put({ dialect: found });
        split(found);
      },
      // Only a help: the number of lines can be set.
      () => undefined,
    );
    // Once for each proposal.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  const skipped = Number(itemOf(draft.dialect, "skip_rows"));

  const concerns = concernsOf(draft.columns, inferred);
  return (
    <>
      {concerns.length > 0 && (
        <Warnings title={`${needLook(concerns.length)}:`}>
          {concerns.map(({ id, name: of, text }) => (
            <p key={id}>
              <ColumnLink id={id} name={of} /> <MessageText text={text} />
            </p>
          ))}
        </Warnings>
      )}
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
        {itemOf(draft.dialect, "header") === true && skipped > 0 && (
          <Note>
            The header is in line {count(skipped + 1)}; {skipped === 1 ? "the line" : `the ${count(skipped)} lines`}{" "}
            before it {skipped === 1 ? "is" : "are"} skipped. If that's wrong, change the lines before the header below.
          </Note>
        )}
        {draft.dialect.header === inferredDialect.header &&
          draft.dialect.skip_rows === inferredDialect.skip_rows &&
          inferred.warnings.length > 0 && (
            <Warnings>
              {inferred.warnings.map((warning) => (
                <p key={warning}>
                  <MessageText text={sentence(warning)} />
                  {/not unique/.test(warning) &&
                    " Rename them below. Later files must have the columns in the same order."}
                </p>
              ))}
            </Warnings>
          )}
        {words.length > 0 && words.length <= WORDS_MAX && draft.paths.length === 0 && (
          <Note>
            <div class="row wrap">
              <span class="grow">The names of the files differ: {words.join(", ")}.</span>
              <Button disabled={locked} onClick={() => put({ paths: [newPathColumn(namesOfSource)] })}>
                Add as a column
              </Button>
            </div>
          </Note>
        )}
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
        {draft.variants.length > 0 && (
          <Note>
            The files have {counted(draft.variants.length + 1, "format")}. They become one table, and each file is read
            in its own format.
          </Note>
        )}
        <FormatDetails
          title="Detected format"
          line={
            (draft.variants.length > 0 ? `${filesText(namesOfMain())}: ` : "") +
            formatLine(inferred, draft.dialect, complete, samples.filter(isOfTable))
          }
          inferred={inferred}
          complete={complete}
          dialect={draft.dialect}
          locked={locked}
          busy={cutting}
          onChange={change}
        />
        {draft.variants.map((variant, at) => {
          const proposed = inferred.variants?.[at];
          const own = { ...inferred, csv: proposed?.csv, findings: proposed?.findings ?? [] };
          const marks = samples.filter(({ key }) => variant.keys.includes(key));
          return (
            <FormatDetails
              key={variant.keys[0]}
              title="Other format"
              line={`${filesText(namesOfVariant(source, samples, variant.keys))}: ${formatText(variant.dialect, marks)}`}
              inferred={own}
              complete={complete}
              dialect={variant.dialect}
              locked={locked}
              busy={false}
              counts={false}
              onChange={(item, value) => changeVariant(at, item, value)}
            />
          );
        })}
      </Section>
      <Section title={counted(draft.columns.length, "column")}>
        <ColumnsStep
          columns={draft.columns}
          problems={problems.byColumn}
          locked={locked}
          onChange={(columns) => put({ columns })}
        />
        <PathColumns names={namesOfSource} columns={draft.paths} locked={locked} onChange={(paths) => put({ paths })} />
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

/** `a.csv and 3 more`. */
function filesText(names: readonly string[]): string {
  const [first = "", ...others] = [...new Set(names)];
  return others.length > 1 ? `${first} and ${count(others.length)} more` : [first, ...others].join(" and ");
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
function usePreviews(draft: Draft, { inferred, samples }: Ready, wanted: { sample: Staged; rows: number }[]) {
  const table = tableProblem(draft.table) ? "sample" : draft.table;
  const form = { ...draft, table, partition: -1, sorted: false, rejectsMax: 1 };
  // A piece has the format of its file.
  const isOf = ({ keys }: DraftVariant, { key, name }: Staged) =>
    keys.includes(key) || samples.some((one) => one.name === name && keys.includes(one.key));
  const globsOf = (variant: DraftVariant) =>
    wanted.flatMap(({ sample }) => (isOf(variant, sample) ? stagedGlob(sample) : []));
  const textOf = (sample: Staged) =>
    JSON.stringify(configOf("", [mappingOf(form, inferred, [stagedGlob(sample)], globsOf)]));
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

/** Warnings before the others are folded. */
const WARNINGS_SHOWN = 2;

export const needLook = (columns: number): string =>
  columns === 1 ? "1 column needs a look" : `${count(columns)} columns need a look`;

/** Leads to the column's row, where its types are. `before`: shows the table. */
export function ColumnLink({ id, name, before }: { id: number; name: string; before?: () => void }) {
  const show = () => {
    before?.();
    requestAnimationFrame(() => {
      const type = `.new-table:not([hidden]) [data-column="${id}"] select`;
      const select = document.querySelector<HTMLSelectElement>(type);
      select?.focus();
      select?.scrollIntoView({ block: "center" });
    });
  };
  return (
    <button type="button" class="link mono" onClick={show}>
      {name}
    </button>
  );
}

/** What to check in the files, in one block, so that the data stays in sight. */
function Warnings({ title, children: texts }: { title?: string; children: ComponentChild[] }) {
  const shown = texts.length > WARNINGS_SHOWN + 1 ? WARNINGS_SHOWN : texts.length;
  return (
    <Note tone="warn">
      {title && <strong>{title}</strong>}
      {texts.slice(0, shown)}
      {shown < texts.length && (
        <details>
          <summary>{counted(texts.length - shown, "more thing", "more things")} to check</summary>
          {texts.slice(shown)}
        </details>
      )}
    </Note>
  );
}
