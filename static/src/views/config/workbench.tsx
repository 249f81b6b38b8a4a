import { useQuery, useQueryClient } from "@tanstack/preact-query";
import {
  EllipsisVertical,
  FileDown,
  FilePlus2,
  History,
  Pencil,
  Save,
  TableProperties,
  Trash2,
  Undo2,
  WandSparkles,
} from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { StoredMapping } from "../../api/config";
import { isActive, jobsQuery, keys } from "../../api/queries";
import { Button } from "../../components/button";
import { Editor, pathAt, pointerRange, type EditorHandle } from "../../components/editor";
import { Menu } from "../../components/menu";
import { Badge } from "../../components/status";
import { toast } from "../../components/toasts";
import { DeletePipeline, RenamePipeline } from "../../shell/manage";
import { useRun } from "../../shell/pipeline";
import { routes } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { useUnsaved } from "../../browser/unsaved";
import { useQueryParams } from "../../browser/query-params";
import { exportPipeline } from "../../browser/save";
import { EditColumn } from "../../tables/edit-column";
import { AddTable } from "./add-table";
import { Notices } from "./notices";
import { lineAndColumn } from "../../format/text";
import { useChecked, useShownProblems, type Shown } from "./validation";
import type { ConfigDraft, Stored } from "./draft";
import { Effect, mappingHeads } from "./effect";
import { formatted, syntaxProblem } from "../../format/json";
import { HistoryDialog } from "./history-dialog";
import { insertMapping } from "./insert";
import { MergeDialog } from "./merge-dialog";
import { isApplied, outlook } from "./outlook";
import { Problems } from "./problems";
import { SaveDialog } from "./save-dialog";
import { schemaQuery } from "./service";

type Over = "save" | "column" | "history" | "merge" | "add" | "rename" | "delete" | undefined;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The last valid JSON, on which previews are based; the config is undefined while there was none. */
function useLastJson(text: string): { text: string; config: unknown } {
  const last = useRef<{ text: string; config: unknown }>({ text: "{}", config: undefined });
  return useMemo(() => {
    const config = parsed(text);
    if (config !== undefined) last.current = { text, config };
    return last.current;
  }, [text]);
}

/** Selects what the URL points at, initially and on changes. */
function useSelectionFromUrl(editor: EditorHandle | undefined, draft: ConfigDraft, at: string | null): void {
  useEffect(() => {
    if (!editor || at === null) return;
    const { from, to } = pointerRange(draft.text.peek(), at, "json");
    editor.revealRange(from, to);
  }, [editor, draft, at]);
}

/** The table and the column at an offset, as far as there are some. */
function columnAt(text: string, offset: number): { table?: string; column?: string } {
  const [, mapping = "", list, column = ""] = pathAt(text, offset);
  const { mappings } = parsed(text) as { mappings?: Record<string | number, StoredMapping> };
  const { table, columns } = mappings?.[mapping] ?? {};
  if (typeof table !== "string") return {};
  const found = list === "columns" && Array.isArray(columns) ? (columns[Number(column)] as unknown) : undefined;
  const name = typeof found === "object" && found !== null && "name" in found ? found.name : undefined;
  return typeof name === "string" ? { table, column: name } : { table };
}

interface ToolbarProps {
  draft: ConfigDraft;
  slug: string;
  /** The text is valid JSON with columns. */
  hasColumns: boolean;
  onOver: (over: Over) => void;
  onFormat: () => void;
  onSave: () => void;
}

/** A button of the toolbar; only its icon where there is little room. */
function Tool({
  name,
  title = name,
  ...button
}: {
  name: string;
  title?: string;
  icon: ComponentChildren;
  disabled: boolean;
  onClick: () => void;
}) {
  return (
    <Button variant="quiet" aria-label={name} title={title} {...button}>
      <span class="config-word">{name}</span>
    </Button>
  );
}

function Toolbar({ draft, slug, hasColumns, onOver, onFormat, onSave }: ToolbarProps) {
  const dirty = draft.dirty.value;
  const locked = draft.offeredDraft.value !== undefined;
  return (
    <div class="row wrap config-bar">
      <h2>Config</h2>
      <Badge tone={dirty ? "warn" : "neutral"}>
        {dirty ? (
          <span>
            unsaved<span class="config-word"> changes</span>
          </span>
        ) : (
          "saved"
        )}
      </Badge>
      <span class="grow" />
      <Tool name="Add table from CSV…" icon={<FilePlus2 />} disabled={locked} onClick={() => onOver("add")} />
      <Tool name="Format" icon={<WandSparkles />} disabled={locked} onClick={onFormat} />
      <Tool
        name="History"
        title="Saved versions of this config"
        icon={<History />}
        disabled={locked}
        onClick={() => onOver("history")}
      />
      <Menu
        label="More actions"
        button={<EllipsisVertical />}
        items={[
          {
            label: "Edit column…",
            hint: "Type, formats and empty cells",
            icon: <TableProperties />,
            disabled: locked || !hasColumns,
            onSelect: () => onOver("column"),
          },
          {
            label: "Discard changes",
            hint: "Revert to the saved config",
            icon: <Undo2 />,
            disabled: !dirty,
            onSelect: () => draft.discard(),
          },
          {
            label: "Rename…",
            ...(dirty || locked ? { hint: "Save or discard your changes first" } : {}),
            icon: <Pencil />,
            disabled: dirty || locked,
            onSelect: () => onOver("rename"),
          },
          {
            label: "Export",
            hint: "Files, tables, config and dashboards as one archive",
            icon: <FileDown />,
            onSelect: () => exportPipeline(slug),
          },
          { label: "Delete…", icon: <Trash2 />, danger: true, onSelect: () => onOver("delete") },
        ]}
      />
      <Button variant="primary" icon={<Save />} disabled={!dirty} onClick={onSave}>
        Save…
      </Button>
    </div>
  );
}

/** Tabs on narrow screens, stored in the URL. */
function Parts({ part, problems, onPart }: { part: string; problems: number; onPart: (part: string) => void }) {
  const tabs = [
    { name: "edit", words: problems > 0 ? `Editor (${problems})` : "Editor" },
    { name: "effect", words: "Effect" },
  ];
  return (
    <div class="config-tabs" role="group" aria-label="Section">
      {tabs.map(({ name, words }) => (
        <Button key={name} variant="quiet" aria-pressed={part === name} onClick={() => onPart(name)}>
          {words}
        </Button>
      ))}
    </div>
  );
}

/** Editor, problems and effect of a config. */
export function Workbench({ slug, draft }: { slug: string; draft: ConfigDraft }) {
  const cache = useQueryClient();
  const schema = useQuery(schemaQuery()).data;
  const [over, setOver] = useState<Over>();
  const { data: listed } = useQuery(jobsQuery(slug));
  // Jobs that had started when the config was saved, so that they don't apply it.
  const [startedBefore, setStartedBefore] = useState<ReadonlySet<string>>();
  const saved = startedBefore !== undefined && !isApplied(listed?.jobs ?? [], startedBefore);
  const [restores, setRestores] = useState<number>();
  const [search, put] = useQueryParams();
  const [editor, setEditor] = useState<EditorHandle>();
  const { run, busy: running } = useRun(slug);
  const text = draft.text.value;
  const base = draft.base.value ?? { text: "", etag: null };
  const last = useLastJson(text);
  const checked = useChecked(slug, text);
  const problems = useShownProblems(text, checked);
  const outlooks = useMemo(
    () => (last.config === undefined ? [] : outlook(parsed(base.text), last.config, schema)),
    [base.text, last, schema],
  );
  const [broken] = problems;
  const unreadable =
    syntaxProblem(text) && broken
      ? `The config can't be read: line ${broken.line}, column ${broken.column}: ${broken.message.replace("Invalid JSON: ", "")}`
      : undefined;
  const part = search.get("part") === "effect" ? "effect" : "edit";
  useSelectionFromUrl(editor, draft, search.get("at"));
  useUnsaved(`the config of ${slug}`, draft.dirty.value, draft.isKept.value ? "kept" : "view");

  const show = (problem: Shown) => editor?.revealRange(problem.from, problem.to);
  const asks = () => {
    if (!draft.dirty.peek()) return toast.done("No changes to save");
    const [first] = problems;
    if (syntaxProblem(draft.text.peek()) && first) {
      show(first);
      return toast.failed("Couldn't save the config", new Error(`line ${first.line}: ${first.message}`));
    }
    setOver("save");
  };
  useShortcuts([{ keys: "mod+s", does: "Save config", run: asks }]);
  const format = () => {
    const problem = syntaxProblem(draft.text.peek());
    if (problem) return editor?.reveal(lineAndColumn(draft.text.peek(), problem.offset).line);
    draft.text.value = formatted(draft.text.peek());
  };
  /** A response in flight may have the previous version. */
  const known = async (now: Stored, take: () => void) => {
    await cache.cancelQueries({ queryKey: keys.config(slug), exact: true });
    take();
    cache.setQueryData(keys.config(slug), now);
  };
  const stored = async (now: Stored) => {
    await known(now, () => draft.saved(now));
    setOver(undefined);
    setStartedBefore(new Set(listed?.jobs.filter(({ status }) => status !== "queued").map(({ job_id: id }) => id)));
    setRestores(undefined);
    toast.done("Config saved");
    void cache.invalidateQueries({ queryKey: keys.pipelines });
    void cache.invalidateQueries({ queryKey: keys.tables(slug) });
  };
  const merge = async (theirs: Stored, merged: string) => {
    await known(theirs, () => draft.rebase(theirs, merged));
    setOver(draft.dirty.peek() ? "save" : undefined);
  };
  const add = (mapping: Record<string, unknown>) => {
    const inserted = insertMapping(draft.text.peek(), mapping, slug);
    setOver(undefined);
    if (!inserted)
      return toast.failed("Couldn't add the table", new Error(unreadable ?? "the config has no list of mappings"));
    draft.text.value = inserted.text;
    const { line } = lineAndColumn(inserted.text, inserted.offset);
    requestAnimationFrame(() => editor?.reveal(line));
  };
  const [, go] = useLocation();
  const leave = (place: string) => {
    draft.take(base);
    go(`~${place}`);
  };
  const offered = draft.offeredDraft.value;

  return (
    <div class="config" data-part={part}>
      <Toolbar
        draft={draft}
        slug={slug}
        hasColumns={last.text === text && mappingHeads(last.config).length > 0}
        onOver={setOver}
        onFormat={format}
        onSave={asks}
      />
      <Notices
        draft={draft}
        saved={saved}
        running={running || (listed?.jobs.some(isActive) ?? false)}
        onRun={() => void run(false)}
        onMerge={() => setOver("merge")}
        onRestore={() => setOver("merge")}
      />
      <Parts part={part} problems={problems.length} onPart={(name) => put("part", name)} />
      <div class="config-body">
        <div class="config-edit">
          <div class="config-editor">
            <Editor
              label={`Config of ${slug}`}
              language="json"
              value={text}
              schema={schema}
              marks={problems}
              readOnly={offered !== undefined}
              onChange={(value) => (draft.text.value = value)}
              onSave={asks}
              handle={setEditor}
            />
          </div>
          <Problems problems={problems} checked={checked} onShow={show} />
        </div>
        <Effect
          slug={slug}
          text={last.text}
          config={last.config}
          outlooks={outlooks}
          checked={checked}
          unreadable={unreadable}
        />
      </div>
      {over === "save" && (
        <SaveDialog
          slug={slug}
          base={base}
          text={text}
          outlooks={outlooks}
          checked={checked}
          restores={restores}
          onSaved={(now) => void stored(now)}
          onConflict={() => setOver("merge")}
          onClose={() => setOver(undefined)}
        />
      )}
      {over === "history" && (
        <HistoryDialog
          slug={slug}
          current={base.text}
          dirty={draft.dirty.value}
          onRestore={(version, earlier) => {
            draft.text.value = earlier;
            setRestores(version);
            setOver("save");
          }}
          onClose={() => setOver(undefined)}
        />
      )}
      {over === "merge" && (
        <MergeDialog
          slug={slug}
          base={offered ? (offered.base ?? undefined) : base.text}
          mine={offered?.text ?? text}
          onTake={(theirs, merged) => void merge(theirs, merged)}
          onClose={() => setOver(undefined)}
        />
      )}
      {over === "column" && (
        <EditColumn
          slug={slug}
          draft={{ text, onApply: (now) => (draft.text.value = now) }}
          {...columnAt(text, editor?.cursor() ?? 0)}
          onClose={() => setOver(undefined)}
        />
      )}
      {over === "add" && <AddTable slug={slug} config={last.config} onAdd={add} onClose={() => setOver(undefined)} />}
      {over === "rename" && (
        <RenamePipeline slug={slug} onDone={(name) => leave(routes.config(name))} onClose={() => setOver(undefined)} />
      )}
      {over === "delete" && (
        <DeletePipeline slug={slug} onDone={() => leave(routes.home())} onClose={() => setOver(undefined)} />
      )}
    </div>
  );
}
