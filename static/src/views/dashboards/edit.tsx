import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { ArrowLeft, EllipsisVertical, Redo2, Undo2 } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { useRecovered } from "../../api/recovered";
import { keys, renamesQuery, tablesQuery } from "../../api/queries";
import { titleOfText } from "../../api/titles";
import type { ConfigRename } from "../../api/types";
import { makeDraft } from "../../boards/make";
import { persisted } from "../../browser/persisted";
import { Button, IconButton } from "../../components/button";
import { Editor, type EditorHandle } from "../../components/editor";
import { Menu } from "../../components/menu";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { routes, takeAdded, takeRepair, takeStart } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { useUnsaved } from "../../browser/unsaved";
import { ConflictDialog, DiscardDialog, PublishDialog } from "./dialogs";
import * as yaml from "../../boards/yaml";
import { Draft } from "./draft";
import { Layout } from "./layout";
import { DeleteDashboard } from "./list";
import { marksOf } from "./marks";
import { Preview } from "./preview";
import { noProblems, Problems } from "./problems";
import { schemaQuery } from "./queries";
import { Split } from "./split";
import "./edit.css";

type OpenDialog = "publish" | "discard" | "delete";
type Mode = "layout" | "yaml";

const isMode = (value: unknown): value is Mode => value === "layout" || value === "yaml";
/** The last mode in this browser. */
const mode = persisted<Mode>("dashboards.mode", "layout", isMode);

/** Applies the proposed repairs, and says so. */
async function repair(draft: Draft, renames: ConfigRename[]): Promise<void> {
  if (draft.state.peek() !== "ready") return;
  const places = await draft.repair(renames);
  if (places > 0) toast.done(`Names replaced in ${counted(places, "place")}. Check the panels, then publish.`);
}

function useDraft(slug: string, name: string): { draft: Draft; from: string | undefined } {
  const draft = useMemo(() => new Draft(slug, name), [slug, name]);
  const cache = useQueryClient();
  const [from] = useState(takeStart);
  const [repairs] = useState(takeRepair);
  useEffect(() => {
    const create = async () => {
      const { tables } = await cache.fetchQuery(tablesQuery(slug));
      await makeDraft(
        slug,
        name,
        tables.find((table) => table.name === from),
      );
    };
    const mend = async () => repair(draft, await cache.fetchQuery(renamesQuery(slug)).catch(() => []));
    void draft.load(from === undefined ? undefined : create).then(() => (repairs ? mend() : undefined));
    return () => draft.leave();
  }, [draft, slug, name, from, repairs, cache]);
  // Retries a failed save after recovery.
  useRecovered(() => {
    if (draft.state.peek() === "failed") void draft.load();
    else if (draft.unsaved.peek()) void draft.save();
    else if (draft.validationFailure.peek()) void draft.validate();
  });
  useUnsaved(`the dashboard ${name}`, draft.dirty.value, "kept");
  return { draft, from };
}

function SaveState({ draft }: { draft: Draft }) {
  const failure = draft.unsaved.value;
  const text = draft.saving.value
    ? "Saving"
    : failure
      ? `Not saved: ${failure.message}`
      : draft.dirty.value
        ? "Not saved yet"
        : draft.saved.value
          ? "Draft saved"
          : "";
  return (
    <span class={failure ? "dash-save bad cut" : "dash-save cut"} role="status" title={text}>
      {text}
    </span>
  );
}

function StateBadge({ draft }: { draft: Draft }) {
  if (!draft.published.value) return <Badge>draft</Badge>;
  const changed = draft.dirty.value || (draft.saved.value && draft.saved.value.text !== draft.published.value.text);
  return changed ? <Badge tone="warn">changed</Badge> : <Badge tone="ok">published</Badge>;
}

export default function Edit({ slug, name }: { slug: string; name: string }) {
  const { draft, from } = useDraft(slug, name);
  const [dialog, setDialog] = useState<OpenDialog>();
  const [, go] = useLocation();
  const heading = titleOfText(draft.text.value) ?? name;
  const title = `${heading} · edit · ${slug}`;
  useShortcuts([
    { keys: "mod+s", does: "Save draft", run: () => void draft.save() },
    { keys: "mod+Enter", does: "Publish", run: () => publishBlocker(draft) === undefined && setDialog("publish") },
    // The YAML editor has its own.
    ...(mode.value === "layout"
      ? [
          { keys: "mod+z", does: "Undo the last change", run: () => draft.undo() },
          { keys: "mod+Z", does: "Redo the last change", run: () => draft.redo() },
          { keys: "mod+y", does: "Redo the last change", run: () => draft.redo() },
        ]
      : []),
  ]);
  if (draft.state.value === "failed") {
    return (
      <Page title={title} heading={heading}>
        <Failed
          title="Couldn't load the dashboard"
          error={draft.failure.value}
          onRetry={() => void draft.load()}
          actions={
            <Link class="button" href={`~${routes.dashboards(slug)}`}>
              All dashboards
            </Link>
          }
        />
      </Page>
    );
  }
  const close = () => setDialog(undefined);
  return (
    <Page title={title} full>
      <Head slug={slug} name={name} title={heading} draft={draft} onAsk={setDialog} />
      {draft.state.value === "loading" ? (
        <div class="dash-creating">
          {from !== undefined && (
            <p class="secondary" role="status">
              Creating a dashboard from the table {from}…
            </p>
          )}
          <Skeleton lines={8} label={from === undefined ? "Loading" : "Panels"} />
        </div>
      ) : (
        <Parts slug={slug} name={name} draft={draft} onPublish={() => setDialog("publish")} />
      )}
      {dialog === "publish" && (
        <PublishDialog
          slug={slug}
          name={name}
          title={heading}
          draft={draft}
          compared={mode.value === "yaml"}
          onClose={close}
        />
      )}
      {dialog === "discard" && <DiscardDialog title={heading} draft={draft} onClose={close} />}
      {dialog === "delete" && (
        <DeleteDashboard
          slug={slug}
          entry={{
            name,
            title: heading,
            published: Boolean(draft.published.value),
            draft: Boolean(draft.saved.value),
            modified: "",
          }}
          onClose={close}
          onDone={() => {
            draft.forget();
            go(`~${routes.dashboards(slug)}`);
          }}
        />
      )}
      {draft.conflict.value && <ConflictDialog draft={draft} theirs={draft.conflict.value} />}
    </Page>
  );
}

/** Why the draft can't be published; undefined if it can, as far as known. */
function publishBlocker(draft: Draft): string | undefined {
  if (!draft.isChanged.value) return "Nothing to publish: the draft matches the published version";
  const problems = draft.verdict.value?.errors.length ?? 0;
  if (problems > 0) return `The draft has ${counted(problems, "problem")}, listed below the editor`;
  return undefined;
}

function Head({
  slug,
  name,
  title,
  draft,
  onAsk,
}: {
  slug: string;
  name: string;
  title: string;
  draft: Draft;
  onAsk: (dialog: OpenDialog) => void;
}) {
  const cache = useQueryClient();
  const [validating, setValidating] = useState(false);
  const hasPublished = Boolean(draft.published.value);
  const changed = draft.isChanged.value;
  const unready = publishBlocker(draft);
  const isLayout = mode.value === "layout" && draft.state.value === "ready";
  const validate = async () => {
    setValidating(true);
    await draft.save();
    await draft.validate();
    setValidating(false);
    const count = draft.verdict.value?.errors.length;
    if (count === 0 && !draft.validationFailure.value) toast.done(noProblems(draft.isChanged.value));
    await cache.invalidateQueries({ queryKey: keys.dashboards(slug), exact: true });
  };
  const back = hasPublished ? routes.dashboard(slug, name) : routes.dashboards(slug);
  return (
    <header class="dash-edit-head">
      <Link
        href={`~${back}`}
        class="button quiet icon-only"
        aria-label={hasPublished ? "View dashboard" : "All dashboards"}
      >
        <ArrowLeft />
      </Link>
      {isLayout && <TitleField title={title} draft={draft} />}
      <h1 class={isLayout ? "for-readers" : "cut"} title={name}>
        {title}
      </h1>
      <StateBadge draft={draft} />
      <SaveState draft={draft} />
      <span class="grow" />
      <IconButton label="Undo" icon={<Undo2 />} disabled={!draft.canUndo.value} onClick={() => draft.undo()} />
      <IconButton label="Redo" icon={<Redo2 />} disabled={!draft.canRedo.value} onClick={() => draft.redo()} />
      <Modes />
      <Button busy={validating} onClick={() => void validate()}>
        Validate
      </Button>
      <Button variant="primary" disabled={unready !== undefined} title={unready} onClick={() => onAsk("publish")}>
        Publish
      </Button>
      <Menu
        label={`More actions for ${title}`}
        button={<EllipsisVertical />}
        class="icon-only"
        items={[
          {
            label: "Discard draft…",
            hint: hasPublished ? "Revert to the published version" : "Not published yet; delete the dashboard instead",
            disabled: !hasPublished || !changed,
            onSelect: () => onAsk("discard"),
          },
          { label: "Delete…", danger: true, onSelect: () => onAsk("delete") },
        ]}
      />
    </header>
  );
}

/** The dashboard's title, edited in place. */
function TitleField({ title, draft }: { title: string; draft: Draft }) {
  const [typed, setTyped] = useState<string>();
  const done = () => {
    const next = typed?.trim();
    setTyped(undefined);
    if (!next || next === title) return;
    try {
      draft.edit(yaml.edited(draft.text.value, (document) => yaml.setTitle(document, next)));
    } catch (error) {
      toast.failed("Couldn't change the title", error);
    }
  };
  return (
    <input
      class="dash-title"
      type="text"
      aria-label="Title of the dashboard"
      maxLength={200}
      value={typed ?? title}
      onInput={(event) => setTyped(event.currentTarget.value)}
      onBlur={done}
      onKeyDown={(event) => {
        if (event.key === "Enter") event.currentTarget.blur();
        else if (event.key === "Escape") {
          setTyped(undefined);
          event.stopPropagation();
        }
      }}
    />
  );
}

const MODES = { layout: "Layout", yaml: "YAML" } as const;

function Modes() {
  return (
    <span class="dash-modes" role="group" aria-label="Edit as">
      {(["layout", "yaml"] as const).map((one) => (
        <button key={one} type="button" aria-pressed={mode.value === one} onClick={() => (mode.value = one)}>
          {MODES[one]}
        </button>
      ))}
    </span>
  );
}

interface PartsProps {
  slug: string;
  name: string;
  draft: Draft;
  onPublish: () => void;
}

/** Line of a panel's `id`, from 1. */
function lineOf(text: string, id: string): number {
  const at = text.split("\n").findIndex((line) => line.includes("id:") && line.includes(id));
  return at < 0 ? 1 : at + 1;
}

function Parts({ slug, name, draft, onPublish }: PartsProps) {
  const editor = useRef<EditorHandle | undefined>(undefined);
  const [marked] = useState(takeAdded);
  /** Where the YAML editor opens. */
  const [place, setPlace] = useState<{ line: number; column: number }>();
  const go = (line: number, column: number) => {
    if (mode.value === "yaml") editor.current?.reveal(line, column);
    else {
      setPlace({ line, column });
      mode.value = "yaml";
    }
  };
  const problems = (
    <Problems
      verdict={draft.verdict.value}
      busy={draft.validating.value}
      failure={draft.validationFailure.value}
      isChanged={draft.isChanged.value}
      onGo={({ line, column }) => go(line, column)}
    />
  );
  if (mode.value === "layout") {
    return (
      <div class="dash-layout">
        <div class="dash-preview" tabIndex={0} role="region" aria-label="Layout">
          <Layout
            slug={slug}
            name={name}
            draft={draft}
            marked={marked}
            onYaml={(id) => (id === undefined ? (mode.value = "yaml") : go(lineOf(draft.text.peek(), id), 1))}
          />
        </div>
        {problems}
      </div>
    );
  }
  return (
    <YamlParts
      {...{ slug, name, draft, onPublish, problems }}
      onHandle={(handle) => {
        editor.current = handle;
        if (place) handle.reveal(place.line, place.column);
        setPlace(undefined);
      }}
    />
  );
}

function YamlParts({
  slug,
  name,
  draft,
  onPublish,
  problems,
  onHandle,
}: PartsProps & { problems: ComponentChildren; onHandle: (handle: EditorHandle) => void }) {
  const { data: schema } = useQuery(schemaQuery());
  const text = draft.text.value;
  const verdict = draft.verdict.value;
  const marks = useMemo(() => marksOf(text, verdict), [text, verdict]);
  const shown = draft.shown.value;
  return (
    <Split
      name="dashboards"
      left={
        <>
          <div class="dash-editor">
            <Editor
              label={`YAML of the dashboard ${name}`}
              language="yaml"
              value={text}
              marks={marks}
              schema={schema}
              onChange={(typed) => draft.type(typed)}
              onSave={() => void draft.save()}
              onSubmit={onPublish}
              handle={onHandle}
            />
          </div>
          {problems}
        </>
      }
      right={
        <div class="dash-preview" tabIndex={0} role="region" aria-label="Preview">
          {shown && <Preview slug={slug} name={name} saved={shown} draft={Boolean(draft.saved.value)} />}
        </div>
      }
    />
  );
}
