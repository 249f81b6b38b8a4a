import { useQuery } from "@tanstack/preact-query";
import { ChartColumn, ListFilter, Type } from "lucide-preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Document } from "yaml";
import { Button } from "../../components/button";
import { Empty, Note, Skeleton } from "../../components/states";
import { toast } from "../../components/toasts";
import { nameFrom } from "../../boards/builder/panel";
import * as yaml from "../../boards/yaml";
import { ArrangedGrid, type Arrange } from "./arrange";
import { Board, useData } from "./board";
import { type DashboardDoc, isReadable, type Panel, readDocument } from "./document";
import type { Draft } from "./draft";
import { withLiterals } from "./literals";
import { isByFields, NewPanel, PanelDialog, TextDialog } from "./panel-dialog";
import { ParamDialog, ParamsMenu } from "./param-dialog";

interface Props {
  slug: string;
  name: string;
  draft: Draft;
  /** A panel to show, e.g. one that was just added. */
  marked: string | undefined;
  /** Opens the YAML at a panel, or where it was. */
  onYaml: (id?: string) => void;
}

const read = (slug: string, name: string, text: string) => ({
  queryKey: ["p", slug, "dashboards", name, "read", text],
  queryFn: () => readDocument(text),
  staleTime: Number.POSITIVE_INFINITY,
});

/** The parts of a document that its data depends on, without positions and sizes of panels. */
const contentOf = ({ params, queries, panels }: DashboardDoc): string =>
  JSON.stringify([
    params,
    [...queries],
    panels.map((panel) => ({ ...panel, width: 0, height: 0, title: "", description: "", tokens: [] })),
  ]);

/** The editor without YAML: panels and filters are changed where they are shown. */
export function Layout(props: Props) {
  const { slug, name, draft } = props;
  const shown = draft.shown.value;
  const typed = useQuery(read(slug, name, draft.text.value)).data;
  const stored = useQuery(read(slug, name, shown?.text ?? "")).data;
  const last = useRef<{ document: DashboardDoc; stored: DashboardDoc }>();
  if (typed && isReadable(typed)) {
    const base = stored && isReadable(stored) ? stored : last.current?.stored;
    last.current = { document: typed, stored: base ?? typed };
  }
  const trouble = typed && !isReadable(typed) ? typed : undefined;
  if (trouble) {
    return (
      <Empty title="The YAML has an error" actions={<Button onClick={() => props.onYaml()}>Open YAML</Button>}>
        Line {trouble.line}: {trouble.message} Fix it to edit the panels here.
      </Empty>
    );
  }
  if (!last.current) return <Skeleton lines={8} label="Panels" />;
  return <Canvas {...props} {...last.current} />;
}

type OpenDialog =
  { kind: "panel"; panel: Panel } | { kind: "text"; panel: Panel | undefined } | { kind: "new" } | { kind: "param" };

function Canvas({
  slug,
  name,
  draft,
  marked,
  onYaml,
  document,
  stored,
}: Props & { document: DashboardDoc; stored: DashboardDoc }) {
  const content = useMemo(() => contentOf(stored), [stored]);
  const loaded = useData({ slug, name, draft: Boolean(draft.saved.value), etag: content, document });
  const [dialog, setDialog] = useState<OpenDialog>();
  const [added, setAdded] = useState<string>();
  const close = () => setDialog(undefined);
  const apply = (edit: (document: Document) => void): boolean => {
    try {
      draft.edit(yaml.edited(draft.text.value, edit));
      return true;
    } catch (error) {
      toast.failed("Couldn't change the dashboard", error);
      return false;
    }
  };
  const undo = { label: "Undo", run: () => draft.undo() };
  const arrange: Arrange = {
    marked: added ?? marked,
    onMove: (id, to) => apply((doc) => yaml.movePanel(doc, id, to)),
    onResize: (id, size) => apply((doc) => yaml.resizePanel(doc, id, size)),
    onCopy: (id) => {
      const copy = nameFrom(id, yaml.panelIds(yaml.parsed(draft.text.value)));
      if (apply((doc) => yaml.copyPanel(doc, id, copy))) setAdded(copy);
    },
    onRemove: (panel) => {
      if (apply((doc) => yaml.removePanel(doc, panel.id))) toast.done(`Removed ${panel.title || panel.id}`, undo);
    },
    onEdit: (panel) => {
      if (!isByFields(panel)) onYaml(panel.id);
      else setDialog({ kind: panel.type === "markdown" ? "text" : "panel", panel });
    },
    onYaml,
  };
  const filled = (sql: string) => withLiterals(sql, document.params, loaded.data.data?.params ?? {});
  const value = yaml.valueOf(yaml.parsed(draft.text.value));
  const add = (
    <>
      <Button icon={<ChartColumn />} onClick={() => setDialog({ kind: "new" })}>
        Add chart
      </Button>
      <Button icon={<Type />} onClick={() => setDialog({ kind: "text", panel: undefined })}>
        Add text
      </Button>
      <Button icon={<ListFilter />} onClick={() => setDialog({ kind: "param" })}>
        Add filter
      </Button>
      {document.params.length > 0 && (
        <ParamsMenu
          params={document.params}
          onRemove={(param) => {
            const done = apply((doc) => {
              yaml.changeUses(doc, ({ params = [] }) =>
                params.some((use) => use.param === param) ? params.filter((use) => use.param !== param) : undefined,
              );
              yaml.removeParam(doc, param);
            });
            if (done)
              toast.done(
                `Removed the filter ${document.params.find(({ name }) => name === param)?.title ?? param}`,
                undo,
              );
          }}
        />
      )}
    </>
  );
  return (
    <>
      {document.description && <p class="secondary">{document.description}</p>}
      {loaded.data.data === undefined && loaded.data.isPending && document.panels.length > 0 && (
        <p class="for-readers" role="status">
          Loading panels
        </p>
      )}
      <Board
        slug={slug}
        document={document}
        loaded={loaded}
        extra={<div class="dash-add">{add}</div>}
        arrange={{ Grid: ArrangedGrid, arrange, pending: draft.dirty.value || loaded.data.isFetching }}
        empty={
          <Empty title="No panels yet">
            <Note>Add a chart or text.</Note>
          </Empty>
        }
      />
      {dialog?.kind === "new" && (
        <NewPanel
          slug={slug}
          value={value}
          filled={filled}
          onClose={close}
          onAdd={(text, id) => {
            draft.edit(text);
            setAdded(id);
            close();
          }}
          text={draft.text.value}
        />
      )}
      {dialog?.kind === "panel" && (
        <PanelDialog
          slug={slug}
          panel={dialog.panel}
          value={value}
          filled={filled}
          onClose={close}
          onApply={(edit) => {
            if (apply(edit)) close();
          }}
        />
      )}
      {dialog?.kind === "text" && (
        <TextDialog
          panel={dialog.panel}
          onClose={close}
          onApply={(title, text) => {
            const { panel } = dialog;
            const id = panel?.id ?? nameFrom("text", yaml.panelIds(yaml.parsed(draft.text.value)));
            const done = apply((doc) => {
              if (!panel)
                yaml.addPanel(doc, { id, type: "markdown", ...(title ? { title } : {}), text: "", width: 12 });
              else if (title !== panel.title) yaml.retitlePanel(doc, id, title);
              yaml.setPanelText(doc, id, text);
            });
            if (!panel && done) setAdded(id);
            if (done) close();
          }}
        />
      )}
      {dialog?.kind === "param" && (
        <ParamDialog
          slug={slug}
          value={value}
          onClose={close}
          onApply={(edit) => {
            if (apply(edit)) close();
          }}
        />
      )}
    </>
  );
}
