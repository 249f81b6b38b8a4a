import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { ArrowLeft, EllipsisVertical } from "lucide-preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { useRecovered } from "../../api/recovered";
import { keys } from "../../api/queries";
import { Button } from "../../components/button";
import { Editor, type EditorHandle } from "../../components/editor";
import { Menu } from "../../components/menu";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { useUnsaved } from "../../browser/unsaved";
import { ConflictDialog, DiscardDialog, PublishDialog } from "./dialogs";
import { Draft } from "./draft";
import { DeleteDashboard } from "./list";
import { marksOf } from "./marks";
import { Preview } from "./preview";
import { Problems } from "./problems";
import { schemaQuery } from "./queries";
import { Split } from "./split";
import "./edit.css";

type Asked = "publish" | "discard" | "delete";

function useDraft(slug: string, name: string): Draft {
  const draft = useMemo(() => new Draft(slug, name), [slug, name]);
  useEffect(() => {
    void draft.load();
    return () => draft.leave();
  }, [draft]);
  // Retries a failed save after recovery.
  useRecovered(() => {
    if (draft.unsaved.peek()) void draft.save();
    else if (draft.validationFailure.peek()) void draft.validate();
  });
  useUnsaved(`the dashboard ${name}`, draft.dirty.value);
  return draft;
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
  const draft = useDraft(slug, name);
  const [asked, setAsked] = useState<Asked>();
  const [, go] = useLocation();
  const title = `${name} · edit · ${slug}`;
  useShortcuts([
    { keys: "mod+s", does: "Save draft", run: () => void draft.save() },
    { keys: "mod+Enter", does: "Publish", run: () => unreadyOf(draft) === undefined && setAsked("publish") },
  ]);
  if (draft.state.value === "failed") {
    return (
      <Page title={title} heading={name}>
        <Failed
          title="Couldn't load the dashboard"
          error={draft.failure.value}
          onRetry={() => void draft.load()}
          actions={<Link href={`~${routes.dashboards(slug)}`}>All dashboards</Link>}
        />
      </Page>
    );
  }
  const close = () => setAsked(undefined);
  return (
    <Page title={title} full>
      <Head slug={slug} name={name} draft={draft} onAsk={setAsked} />
      {draft.state.value === "loading" ? (
        <Skeleton lines={8} />
      ) : (
        <Parts slug={slug} name={name} draft={draft} onPublish={() => setAsked("publish")} />
      )}
      {asked === "publish" && <PublishDialog slug={slug} name={name} draft={draft} onClose={close} />}
      {asked === "discard" && <DiscardDialog name={name} draft={draft} onClose={close} />}
      {asked === "delete" && (
        <DeleteDashboard
          slug={slug}
          entry={{ name, published: Boolean(draft.published.value), draft: Boolean(draft.saved.value), modified: "" }}
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
function unreadyOf(draft: Draft): string | undefined {
  if (!draft.dirty.value && !draft.saved.value) return "Nothing to publish: the draft matches the published version";
  const problems = draft.verdict.value?.errors.length ?? 0;
  if (problems > 0) return `The draft has ${counted(problems, "problem")}, listed below the editor`;
  return undefined;
}

function Head({
  slug,
  name,
  draft,
  onAsk,
}: {
  slug: string;
  name: string;
  draft: Draft;
  onAsk: (asked: Asked) => void;
}) {
  const cache = useQueryClient();
  const [validating, setValidating] = useState(false);
  const hasPublished = Boolean(draft.published.value);
  const changed = draft.dirty.value || Boolean(draft.saved.value);
  const unready = unreadyOf(draft);
  const validate = async () => {
    setValidating(true);
    await draft.save();
    await draft.validate();
    setValidating(false);
    const count = draft.verdict.value?.errors.length;
    if (count === 0 && !draft.validationFailure.value) toast.done("No problems. Ready to publish.");
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
      <h1 class="cut">{name}</h1>
      <StateBadge draft={draft} />
      <SaveState draft={draft} />
      <span class="grow" />
      <Button busy={validating} onClick={() => void validate()}>
        Validate
      </Button>
      <Button variant="primary" disabled={unready !== undefined} title={unready} onClick={() => onAsk("publish")}>
        Publish
      </Button>
      <Menu
        label={`More actions for ${name}`}
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

function Parts({ slug, name, draft, onPublish }: { slug: string; name: string; draft: Draft; onPublish: () => void }) {
  const { data: schema } = useQuery(schemaQuery());
  const editor = useRef<EditorHandle | undefined>(undefined);
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
              handle={(handle) => {
                editor.current = handle;
              }}
            />
          </div>
          <Problems
            verdict={verdict}
            busy={draft.validating.value}
            failure={draft.validationFailure.value}
            onGo={({ line, column }) => editor.current?.reveal(line, column)}
          />
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
