import { useQuery } from "@tanstack/preact-query";
import { PanelLeft } from "lucide-preact";
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useLocation, useSearch } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { savedQueriesQuery, tablesQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Editor, type EditorHandle } from "../../components/editor";
import { Page } from "../../components/page";
import { Failed } from "../../components/states";
import { toast } from "../../components/toasts";
import { routes, runsImmediately } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { NoTables } from "./empty";
import { markAt, positionOf } from "./position";
import { ResultPane } from "./result";
import { RunControls } from "./run";
import { SavedControls, useSaving } from "./saving";
import { Side } from "./side";
import { Splitter, useSplit } from "./splitter";
import { statementToRun, replaceText, run, stateOf } from "./state";
import "./query.css";

/** Loads `?sql=` and `?saved=` into the editor once, and keeps a shareable URL. */
function useAddress(slug: string) {
  const search = useSearch();
  const [, go] = useLocation();
  const { data } = useQuery(savedQueriesQuery(slug));
  const state = stateOf(slug);
  const saved = state.saved.value;
  const params = new URLSearchParams(search);
  const [sql, wanted] = [params.get("sql"), params.get("saved")];
  const seen = useRef<string>();
  useEffect(() => {
    const show = (id: string) => go(`~${routes.query(slug, id ? { saved: id } : {})}`, { replace: true });
    if (sql !== null) {
      replaceText(slug, sql, data?.queries ?? []);
      if (runsImmediately()) void run(slug, statementToRun(sql, "", 0));
      show("");
    } else if (wanted && wanted !== saved && seen.current !== wanted) {
      const found = data?.queries.find(({ id }) => id === wanted);
      if (!data) return;
      seen.current = wanted;
      if (found) replaceText(slug, found.sql, data.queries, found.id);
      else {
        toast.failed("Couldn't open the saved query", new Error("it was deleted or belongs to another pipeline"));
        show(saved);
      }
    } else {
      seen.current = saved;
      if (saved !== (wanted ?? "")) show(saved);
    }
  }, [slug, sql, wanted, saved, data, go]);
  const missing = Boolean(saved && data && !data.queries.some(({ id }) => id === saved));
  useEffect(() => {
    // It was deleted; the text stays.
    if (missing) state.saved.value = "";
  }, [missing, state]);
}

/** Marks of the last error while the text is unchanged. */
function useMarks(slug: string) {
  const state = stateOf(slug);
  return useComputed(() => {
    const outcome = state.outcome.value;
    if (!outcome?.failure || outcome.from === undefined || outcome.text !== state.text.value) return [];
    const position = positionOf(outcome.failure);
    return position ? [markAt(outcome.sql, outcome.from, position, outcome.failure.message)] : [];
  }).value;
}

function useCompletions(slug: string) {
  const { data } = useQuery(tablesQuery(slug));
  return useMemo(
    () =>
      Object.fromEntries(
        (data?.tables ?? []).map(({ name, schema }) => [
          name,
          schema.map((column) => ({ label: column.name, type: "property", detail: column.type })),
        ]),
      ),
    [data],
  );
}

export default function QueryView({ slug }: { slug: string }) {
  const tables = useQuery(tablesQuery(slug));
  if (tables.error && !tables.data && !asFailure(tables.error).passing) {
    return (
      <Page title={`Query · ${slug}`} full>
        <Failed
          title="Couldn't load the tables"
          error={tables.error}
          onRetry={() => void tables.refetch()}
          actions={<a href={routes.config(slug)}>Open config</a>}
        />
      </Page>
    );
  }
  const empty = tables.data?.tables.length === 0;
  return (
    <Page title={`Query · ${slug}`} full>
      {empty ? <NoTables slug={slug} /> : <Workbench slug={slug} />}
    </Page>
  );
}

function Workbench({ slug }: { slug: string }) {
  useAddress(slug);
  const state = stateOf(slug);
  const sheet = useSignal(false);
  const editor = useRef<EditorHandle>();
  const saving = useSaving(slug);
  const split = useSplit();
  const marks = useMarks(slug);
  const completions = useCompletions(slug);
  const start = () => {
    const { current } = editor;
    void run(slug, statementToRun(state.text.value, current?.selection() ?? "", current?.cursor() ?? 0));
  };
  useShortcuts([
    { keys: "mod+Enter", does: "Run the query or the selection", run: start },
    { keys: "mod+s", does: "Save query", run: saving.save },
  ]);
  const insert = (text: string) => {
    sheet.value = false;
    // The sheet restores focus after closing.
    setTimeout(() => {
      editor.current?.insert(text);
      editor.current?.focus();
    });
  };
  const side = <Side slug={slug} onInsert={insert} onLoaded={() => (sheet.value = false)} />;
  return (
    <div class="query">
      <aside class="query-side" aria-label="Tables, saved queries and history">
        {side}
      </aside>
      {sheet.value && (
        <Dialog title="Tables and queries" kind="drawer" onClose={() => (sheet.value = false)}>
          {side}
        </Dialog>
      )}
      <div class="query-main" style={{ "--query-split": `${split.value * 100}%` }}>
        <div class="query-editor" id="query-editor">
          <div class="query-tools">
            <Button class="query-sheet" icon={<PanelLeft />} onClick={() => (sheet.value = true)}>
              Tables
            </Button>
            <RunControls slug={slug} onRun={start} />
            <span class="grow" />
            <SavedControls slug={slug} saving={saving} />
          </div>
          <div class="query-text">
            <Editor
              label="SQL"
              language="sql"
              value={state.text.value}
              onChange={(text) => (state.text.value = text)}
              marks={marks}
              tables={completions}
              onSubmit={start}
              onSave={saving.save}
              handle={(handle) => (editor.current = handle)}
            />
          </div>
        </div>
        <Splitter split={split} controls="query-editor" />
        <ResultPane slug={slug} onRun={start} onReveal={(line, column) => editor.current?.reveal(line, column)} />
      </div>
      {saving.dialog}
    </div>
  );
}
