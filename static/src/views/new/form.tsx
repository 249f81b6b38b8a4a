import { useQuery } from "@tanstack/preact-query";
import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { pipelinesQuery, statusQuery } from "../../api/queries";
import { X } from "lucide-preact";
import { Button, IconButton } from "../../components/button";
import { Checkbox, SelectField, TextField } from "../../components/field";
import { Section } from "../../components/page";
import { MessageText } from "../../components/message-text";
import { Failed, Note, Skeleton } from "../../components/states";
import { Bar } from "../../components/status";
import { toast } from "../../components/toasts";
import { bytes, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { useUnsaved } from "../../browser/unsaved";
import { uploads } from "../../uploads";
import { inPipeline, pipelineOf } from "../../uploads/keys";
import { shapeOf } from "../../uploads/parts";
import { partsToUpload, type KeyedPart } from "../../uploads/send";
import { stemOf } from "../../uploads/source-names";
import { versionsAmong } from "../../uploads/versions";
import { UPLOAD_BYTES_MAX } from "../../api/rules";
import { exactGlob } from "../../uploads/globs";
import { filesOf, PipelineCreation } from "./create";
import { CreationStep, failureLabel } from "./creation";
import { slugOf, slugProblem } from "./draft";
import { commonStem, type Group } from "./groups";
import { useProposal, type Proposal } from "./proposal";
import type { Source } from "../../uploads/staging";
import { ColumnLink, needLook, TableForm, type TableDraft } from "./table-form";

/** Value of the select for a pipeline that doesn't exist yet. */
const NEW = "";
/** Columns to look at that are named beside the button. */
const CONCERNS_NAMED = 5;
const NONE: ReadonlySet<string> = new Set();

interface Props {
  groups: Group[];
  /** The file in the lake, instead of groups. */
  lakeKey: string | undefined;
  /** The pipeline that gets the tables; undefined: a new one. */
  target: string | undefined;
  /** Leads to the choice of files, and keeps these. */
  onOther: () => void;
  /** Drops the files. */
  onCancel: () => void;
  /** Leaves a file out of the choice. */
  onRemove: (file: File) => void;
}

const sourceOf = (group: Group | undefined, lakeKey: string | undefined): Source =>
  group ? { kind: "files", files: group.files, formats: group.formats } : { kind: "lake", key: lakeKey ?? "" };

/** One table a group of files, and one button that creates all of them. */
export function Wizard({ groups, lakeKey, target, onOther, onCancel, onRemove }: Props) {
  const [, go] = useLocation();
  const { data: listed } = useQuery(pipelinesQuery());
  const known = listed?.pipelines ?? [];
  // A folder without a config isn't a pipeline yet.
  const pipelines = known.filter(({ config }) => config !== "missing");
  const own = lakeKey === undefined ? undefined : pipelineOf(lakeKey);
  const ownExists = own !== undefined && pipelines.some(({ slug }) => slug === own);
  const taken = new Set(pipelines.map(({ slug }) => slug));
  const all = groups.length > 0 ? groups : [undefined];
  const stem = groups[0]
    ? commonStem(groups[0].files)
    : stemOf((lakeKey ?? "data").slice((lakeKey ?? "").lastIndexOf("/") + 1));

  const maker = useMemo(() => new PipelineCreation(), []);
  const [into, setInto] = useState<string>();
  const existing = into ?? target ?? (ownExists ? own : undefined) ?? NEW;
  const [typed, setTyped] = useState<string>();
  const [title, setTitle] = useState("");
  const slug = existing || maker.target || (typed ?? (own && !taken.has(own) ? own : slugOf(stem, taken)));
  const status = useQuery({ ...statusQuery(existing), enabled: existing !== NEW });
  const there = new Set((existing === NEW ? [] : (status.data?.tables ?? [])).map(({ name }) => name));

  const [drafts, setDrafts] = useState<ReadonlyMap<number, TableDraft>>(new Map());
  // Names of files of which no table can be proposed, by their group.
  const [unread, setUnread] = useState<ReadonlyMap<number, string>>(new Map());
  const [shown, setShown] = useState(0);
  const [leftOut, setLeftOut] = useState<ReadonlySet<number>>(new Set());
  const wanted = new Map([...drafts].filter(([at]) => !leftOut.has(at)).sort(([one], [other]) => one - other));
  const making = maker.state.value;
  const locked = making !== undefined;
  const [preparing, setPreparing] = useState(false);
  const [refusedSlug, setRefusedSlug] = useState<string>();
  const [touched, setTouched] = useState(false);
  useEffect(() => () => maker.stop(), [maker]);
  useUnsaved("the new table", (touched || locked) && making?.step !== "done" && !maker.begun);

  const slugError =
    existing !== NEW || maker.begun ? undefined : slugProblem(slug, refusedSlug === slug ? new Set([slug]) : taken);
  const names = [...wanted.values()].map(({ draft }) => draft.table);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  const failed = [...unread].find(([at]) => !leftOut.has(at))?.[1];
  const waiting =
    failed === undefined && (wanted.size < all.length - leftOut.size || (existing !== NEW && !status.data));
  const blocked = waiting
    ? undefined
    : (failed !== undefined &&
        `${failed} can't be read. ${all.length > 1 ? "Leave it out" : "Choose another file"}.`) ||
      (wanted.size === 0 && "Create at least one table.") ||
      (twice &&
        `${counted(names.filter((name) => name === twice).length, "table")} are named ${twice}. Rename them.`) ||
      (slugError && "Choose another URL name.") ||
      [...wanted.values()]
        .map(({ blocked: why, draft }) => why && (all.length > 1 ? `${draft.table}: ${why}` : why))
        .find(Boolean);

  const concerns = [...wanted].flatMap(([at, table]) => table.concerns.map((one) => ({ at, ...one })));

  const make = async () => {
    const mappings: Record<string, unknown>[] = [];
    const parts: KeyedPart[] = [];
    setPreparing(true);
    try {
      // Large files are cut first, so that nothing is created for a file that can't be.
      for (const [at, { draft, mapping, dialectOf }] of wanted) {
        const source = sourceOf(groups[at], lakeKey);
        const globs = filesOf(source, slug, draft.table);
        const files = source.kind === "files" ? source.files : [];
        const own = await partsToUpload(slug, globs, files, ({ name }) => shapeOf(dialectOf(name)));
        const globsOf = (names: string[]) =>
          own.filter(({ of }) => names.includes(of)).map(({ key }) => exactGlob(inPipeline(slug, key)));
        mappings.push(mapping(globs, globsOf));
        parts.push(...own);
      }
    } catch (error) {
      return toast.failed("Couldn't prepare the files", error);
    } finally {
      setPreparing(false);
    }
    const plan = {
      slug,
      title: title.trim() || slug,
      existing: existing !== NEW,
      ...(lakeKey !== undefined && groups.length === 0 ? { lakeKey } : {}),
      mappings,
      parts,
    };
    if (await maker.make(plan)) {
      // The view already showed the uploads.
      if (uploads.state.value.files === parts.length) uploads.clear();
      return go(routes.data(slug, names[0], { chart: 1 }));
    }
    const failure = maker.state.value?.failure;
    if (failure && maker.unwatched) return toast.failed(`${slug}: ${failureLabel(failure.step)}`, failure.error);
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
    document.querySelector<HTMLInputElement>(".new-target input")?.focus();
  });

  return (
    <div
      class="new-wizard"
      onInput={(event) => isTyped(event.target) && setTouched(true)}
      onChange={() => setTouched(true)}
    >
      <SourceLine groups={groups} lakeKey={lakeKey} locked={locked} onOther={onOther} onRemove={onRemove} />
      {all.length > 1 && (
        <>
          <Note>The files differ in their columns, so they become {counted(all.length, "table")}.</Note>
          <nav class="tabs new-tabs" aria-label="New tables">
            {all.map((group, at) => (
              <button
                key={at}
                type="button"
                aria-current={at === shown ? "page" : undefined}
                onClick={() => setShown(at)}
              >
                {drafts.get(at)?.draft.table ?? stemOf(group?.files[0]?.name ?? "")}{" "}
                <span class="dim">
                  {counted(group?.files.length ?? 1, "file")}
                  {leftOut.has(at) && " left out"}
                </span>
              </button>
            ))}
          </nav>
        </>
      )}
      {all.map((group, at) => (
        <div key={group?.id ?? "lake"} class="new-table" hidden={at !== shown}>
          {all.length > 1 && (
            <Checkbox
              label={`Create this table from ${group?.files.map(({ name }) => name).join(", ") ?? ""}`}
              checked={!leftOut.has(at)}
              disabled={locked || maker.begun}
              onChange={(event) => {
                const kept = new Set([...leftOut].filter((one) => one !== at));
                setLeftOut(event.currentTarget.checked ? kept : kept.add(at));
              }}
            />
          )}
          <ProposedTable
            group={group}
            lakeKey={lakeKey}
            taken={maker.begun ? NONE : there}
            locked={locked}
            nameLocked={maker.begun}
            onOther={onOther}
            onDraft={(table) => setDrafts((before) => new Map([...before, [at, table]]))}
            onUnread={(name) =>
              setUnread((before) => {
                const others = [...before].filter(([one]) => one !== at);
                return new Map(name === undefined ? others : [...others, [at, name]]);
              })
            }
          />
        </div>
      ))}
      <Section title="Pipeline">
        <div class="new-naming new-target">
          {pipelines.length > 0 && (
            <SelectField
              label="Add to"
              value={existing}
              disabled={locked || maker.begun || ownExists}
              onChange={(event) => setInto(event.currentTarget.value)}
            >
              <option value={NEW}>New pipeline</option>
              {pipelines.map((one) => (
                <option key={one.slug} value={one.slug}>
                  {one.title || one.slug}
                </option>
              ))}
            </SelectField>
          )}
          {existing === NEW && (
            <>
              <TextField
                label="URL name"
                value={slug}
                error={slugError}
                hint="Used in links and folder names."
                disabled={locked || maker.begun}
                onInput={(event) => setTyped(event.currentTarget.value.trim())}
              />
              <TextField
                label="Title"
                value={title}
                placeholder={slug}
                maxLength={200}
                disabled={locked}
                onInput={(event) => setTitle(event.currentTarget.value)}
              />
            </>
          )}
        </div>
        {making && (
          <CreationStep
            making={making}
            slug={slug}
            onRetry={() => {
              if (making.failure?.step === "run") maker.rerun();
              void make();
            }}
            onEdit={() => {
              maker.again();
              maker.rerun();
            }}
          />
        )}
      </Section>
      {!making && (
        <div class="new-foot">
          <span class="grow" role="status">
            {blocked ? <MessageText text={blocked} /> : concerns.length > 0 && `${needLook(concerns.length)}: `}
            {!blocked &&
              concerns.slice(0, CONCERNS_NAMED).map(({ at, id, name }, nth) => (
                <Fragment key={`${at} ${id}`}>
                  {nth > 0 && ", "}
                  <ColumnLink id={id} name={name} before={() => setShown(at)} />
                </Fragment>
              ))}
            {!blocked && concerns.length > CONCERNS_NAMED && " …"}
          </span>
          <Button onClick={onCancel}>Cancel</Button>
          <Button
            variant="primary"
            busy={preparing}
            disabled={waiting || blocked !== undefined}
            onClick={() => void make()}
          >
            {existing === NEW ? "Create pipeline" : wanted.size > 1 ? "Create tables" : "Create table"}
          </Button>
        </div>
      )}
    </div>
  );
}

/** Rendering between the input and the change of a checkbox or select would set it back. */
const isTyped = (field: EventTarget | null): boolean =>
  field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type !== "checkbox");

interface ProposedProps {
  group: Group | undefined;
  lakeKey: string | undefined;
  taken: ReadonlySet<string>;
  locked: boolean;
  nameLocked: boolean;
  onOther: () => void;
  onDraft: (table: TableDraft) => void;
  /** The file that can't be read; undefined once it can. */
  onUnread: (name: string | undefined) => void;
}

function ProposedTable({ group, lakeKey, taken, locked, nameLocked, onOther, onDraft, onUnread }: ProposedProps) {
  const source = useMemo(() => sourceOf(group, lakeKey), [group, lakeKey]);
  const [state, again] = useProposal(source);
  const proposal = state.value;
  const name = source.kind === "files" ? (source.files[0]?.name ?? "") : source.key;
  const failed = proposal?.phase === "failed" ? name : undefined;
  const latest = useRef(onUnread);
  latest.current = onUnread;
  useEffect(() => latest.current(failed), [failed]);
  if (!proposal || proposal.phase === "staging" || proposal.phase === "inferring")
    return <AnalysisPending name={name} proposal={proposal} />;
  const several = source.kind === "files" && source.files.length > 1;
  if (proposal.phase === "failed")
    return (
      <Failed
        title={several ? "The files couldn't be read as one table" : `${name} couldn't be read`}
        error={proposal.error}
        onRetry={again}
        actions={<Button onClick={onOther}>Choose another file</Button>}
      />
    );
  return (
    <TableForm
      key={proposal.staged.key}
      source={source}
      proposal={proposal}
      name={several ? tableOf(commonStem(source.files)) : undefined}
      taken={taken}
      locked={locked}
      nameLocked={nameLocked}
      onDraft={onDraft}
    />
  );
}

/** A table name from the common part of file names; undefined if it gives none. */
function tableOf(stem: string): string | undefined {
  const name = stem
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[^a-z]+|_+$/g, "")
    .slice(0, 63);
  return name === "" ? undefined : name;
}

function AnalysisPending({ name, proposal }: { name: string; proposal: Proposal | undefined }) {
  const sending = proposal?.phase === "staging" && proposal.total > 0;
  return (
    <div class="stack" role="status">
      <p>
        {sending ? (
          <>
            Uploading a sample of <code>{name}</code>:{" "}
            <span class="num">
              {bytes(proposal.sent)} of {bytes(proposal.total)}
            </span>
          </>
        ) : (
          <>
            Analyzing <code>{name}</code>
          </>
        )}
      </p>
      {sending && <Bar done={proposal.sent} total={proposal.total} label="Sent" />}
      <Skeleton lines={12} />
    </div>
  );
}

interface LineProps {
  groups: Group[];
  lakeKey: string | undefined;
  locked: boolean;
  onOther: () => void;
  onRemove: (file: File) => void;
}

function SourceLine({ groups, lakeKey, locked, onOther, onRemove }: LineProps) {
  const files = groups.flatMap((group) => group.files);
  const large = files.filter(({ size }) => size > UPLOAD_BYTES_MAX);
  const versions = useMemo(
    () => groups.flatMap((group) => versionsAmong(group.files.map(({ name }) => name))),
    [groups],
  );
  const [first] = files;
  return (
    <div class="stack">
      <div class="row wrap">
        <span class="grow">
          {first === undefined ? (
            <code>{lakeKey}</code>
          ) : files.length === 1 ? (
            <code>{first.name}</code>
          ) : (
            `${first.name} and ${counted(files.length - 1, "more file")}`
          )}
          {files.length > 0 && (
            <span class="secondary"> · {bytes(files.reduce((sum, { size }) => sum + size, 0))}</span>
          )}
        </span>
        {!locked && <Button onClick={onOther}>Choose other files</Button>}
      </div>
      {files.length > 1 && (
        <details class="new-files">
          <summary>Show files</summary>
          <ul>
            {files.map((file, at) => (
              <li key={at} class="row">
                <code class="grow">{file.name}</code>
                <span class="secondary num">{bytes(file.size)}</span>
                {!locked && <IconButton label={`Leave out ${file.name}`} icon={<X />} onClick={() => onRemove(file)} />}
              </li>
            ))}
          </ul>
        </details>
      )}
      {versions.map(([name, other]) => (
        <Note key={name} tone="warn">
          <div class="row wrap">
            <span class="grow">
              {name} looks like another version of {other}. The table gets the rows of both, so those that are in both
              count twice.
            </span>
            {!locked &&
              files
                .filter((file) => file.name === name || file.name === other)
                .map((file) => (
                  <Button key={file.name} onClick={() => onRemove(file)}>
                    Leave out {file.name}
                  </Button>
                ))}
          </div>
        </Note>
      ))}
      {large.length > 0 && (
        <Note>
          {large.map(({ name }) => name).join(", ")}: more than {bytes(UPLOAD_BYTES_MAX)}, so it is uploaded in
          compressed parts. The preview shows a sample.
        </Note>
      )}
    </div>
  );
}
