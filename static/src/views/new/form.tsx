import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { pipelinesQuery } from "../../api/queries";
import type { Previewed } from "../../api/types";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { Failed, Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { bytes, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { useUnsaved } from "../../browser/unsaved";
import { uploads } from "../../uploads";
import { pipelineOf } from "../../uploads/keys";
import { stemOf } from "../../uploads/source-names";
import { UPLOAD_BYTES_MAX } from "../../api/rules";
import { ColumnsStep } from "./columns";
import { filesOf, keysOf, PipelineCreation, type Plan } from "./create";
import {
  changed,
  columnProblems,
  configOf,
  cutsAnew,
  draftOf,
  slugOf,
  slugProblem,
  tableProblem,
  type Draft,
  type DraftColumn,
} from "./draft";
import { FormatStep } from "./format";
import { CreationStep, troubleOf } from "./creation";
import { NamingStep } from "./naming";
import { PreviewStep } from "./preview";
import type { Proposal } from "./proposal";
import { ownOf, previewOf, recut, stagedGlob } from "./recut";
import type { Source } from "./staging";

type Ready = Extract<Proposal, { phase: "ready" }>;
const PREVIEW_ROWS = 50;
/** Delay before a preview, in milliseconds. */
const PAUSE_MS = 300;

interface Props {
  source: Source;
  proposal: Ready;
  onOther: () => void;
}

/** Wizard steps: detected format, columns, preview, names, and the create button. */
export function FromProposal({ source, proposal, onOther }: Props) {
  const { inferred, staged, otherShape } = proposal;
  const [, go] = useLocation();
  const { data: listed } = useQuery(pipelinesQuery());
  const own = source.kind === "lake" ? pipelineOf(source.key) : undefined;
  // A folder without a config isn't a pipeline yet.
  const known = listed?.pipelines ?? [];
  const taken = new Set(known.filter(({ config }) => config !== "missing").map(({ slug }) => slug));
  const [draft, setDraft] = useState<Draft>(() => {
    const name = own && !taken.has(own) ? own : slugOf(stemOf(nameOfSource(source)), taken);
    return draftOf(inferred, name);
  });
  const maker = useMemo(() => new PipelineCreation(), []);
  const making = maker.state.value;
  const [cutting, setCutting] = useState(false);
  // Columns of the last split, and the user's changes to any column.
  const cuts = useRef({ round: 0, cut: draft.columns, own: [] as DraftColumn[] });
  const [refusedSlug, setRefusedSlug] = useState<string>();
  useEffect(() => () => maker.stop(), [maker]);
  useUnsaved("the new pipeline", making?.step !== "done" && !maker.begun);

  const files = source.kind === "files" ? source.files.filter((file) => !otherShape.includes(file)) : [];
  const used: Source = source.kind === "files" ? { kind: "files", files } : source;
  const preview = usePreview(draft, proposal);
  const locked = making !== undefined;
  const slugError = maker.begun
    ? undefined
    : refusedSlug === draft.slug
      ? slugProblem(draft.slug, new Set([draft.slug]))
      : slugProblem(draft.slug, taken);
  const problems = serviceProblems(preview.data, draft);
  const ready =
    !slugError &&
    !tableProblem(draft.table) &&
    columnProblems(draft.columns).size === 0 &&
    draft.columns.some(({ included }) => included);
  const put = (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change }));

  const make = async () => {
    const { slug, table } = draft;
    const plan: Plan = {
      slug,
      source: used,
      files: keysOf(slug, table, files),
      config: configOf(draft, inferred, filesOf(used, slug, table)),
    };
    if (await maker.make(plan)) {
      // The view already showed the uploads.
      if (uploads.state.value.files === plan.files.length) uploads.clear();
      return go(routes.data(slug, table, { chart: 1 }));
    }
    const failure = maker.state.value?.failure;
    if (failure && maker.unwatched) return toast.failed(`${slug}: ${troubleOf(failure.step)}`, failure.error);
    if (failure?.step === "create" && failure.error.code === "already_exists") {
      setRefusedSlug(slug);
      maker.again();
      focusSlug.current = true;
    }
  };
  const focusSlug = useRef(false);
  useEffect(() => {
    if (!focusSlug.current || locked) return;
    focusSlug.current = false;
    document.querySelector<HTMLInputElement>(".new-naming input")?.focus();
  });

  const change = (item: string, value: unknown) => {
    const dialect = changed(draft.dialect, item, value);
    put({ dialect });
    if (!cutsAnew(item)) return;
    const { cut, own } = cuts.current;
    const round = (cuts.current.round += 1);
    // Ignores outdated responses.
    const isLast = () => cuts.current.round === round;
    cuts.current.own = ownOf(draft.columns, cut, own);
    setCutting(true);
    recut(staged, dialect, cuts.current.own, draftOf(inferred, "").columns)
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
      <SourceLine source={source} left={otherShape} locked={locked} onOther={onOther} />
      <Section title="1. Detected format">
        <FormatStep inferred={inferred} dialect={draft.dialect} locked={locked} busy={cutting} onChange={change} />
      </Section>
      <Section title={`2. ${counted(draft.columns.length, "column")}`}>
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
        <div class="row">
          <h3>First rows</h3>
          <span class="dim" role="status">
            {(preview.isPlaceholderData || cutting) && "reloading"}
          </span>
        </div>
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
      </Section>
      <Section title="3. Pipeline and table">
        <NamingStep
          draft={draft}
          inferred={inferred}
          slugError={slugError}
          locked={locked}
          slugFixed={maker.begun}
          onChange={put}
        />
        {making ? (
          <CreationStep
            making={making}
            slug={draft.slug}
            onRetry={() => {
              if (making.failure?.step === "run") maker.rerun();
              void make();
            }}
            onEdit={() => {
              maker.again();
              maker.rerun();
            }}
          />
        ) : (
          <div class="row wrap">
            <Button variant="primary" disabled={!ready} onClick={() => void make()}>
              Create pipeline
            </Button>
            <Button onClick={onOther}>Cancel</Button>
          </div>
        )}
      </Section>
    </>
  );
}

const nameOfSource = (source: Source): string =>
  source.kind === "files" ? (source.files[0]?.name ?? "data") : source.key.slice(source.key.lastIndexOf("/") + 1);

function SourceLine({
  source,
  left,
  locked,
  onOther,
}: {
  source: Source;
  left: File[];
  locked: boolean;
  onOther: () => void;
}) {
  const files = source.kind === "files" ? source.files : [];
  const large = files.filter(({ size }) => size > UPLOAD_BYTES_MAX);
  return (
    <div class="stack">
      <div class="row wrap">
        <span class="grow">
          {source.kind === "lake" || files.length === 1 ? (
            <code>{source.kind === "lake" ? source.key : files[0]?.name}</code>
          ) : (
            `${nameOfSource(source)} and ${counted(files.length - 1, "more file")}`
          )}
          {files.length > 0 && (
            <span class="secondary"> · {bytes(files.reduce((sum, { size }) => sum + size, 0))}</span>
          )}
        </span>
        {!locked && <Button onClick={onOther}>Choose other files</Button>}
      </div>
      {left.length > 0 && (
        <Note tone="warn">
          {counted(left.length, "file", "files")} skipped: the header differs from {nameOfSource(source)}:{" "}
          {left
            .slice(0, 5)
            .map(({ name }) => name)
            .join(", ")}
          {left.length > 5 && ", …"}.
        </Note>
      )}
      {large.length > 0 && (
        <Note tone="warn">
          {large.map(({ name }) => name).join(", ")}: larger than {bytes(UPLOAD_BYTES_MAX)}. Compress with gzip or zstd
          and drop the compressed file, or copy the file to the lake's bucket and select it there.
        </Note>
      )}
    </div>
  );
}

/** Preview of the sample; the previous one is shown while loading. */
function usePreview(draft: Draft, { staged, inferred }: Ready) {
  const { dialect, columns } = draft;
  const table = tableProblem(draft.table) ? "sample" : draft.table;
  const text = JSON.stringify(
    configOf({ ...draft, table, slug: "sample", title: "", dialect, columns, partition: -1, sorted: false }, inferred, [
      stagedGlob(staged),
    ]),
  );
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return useQuery({
    queryKey: ["preview", staged.key, settled],
    queryFn: ({ signal }) => previewOf(staged, JSON.parse(settled), PREVIEW_ROWS, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
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
