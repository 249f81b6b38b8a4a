import { useQuery } from "@tanstack/preact-query";
import { ChevronDown, RotateCcw } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { useLocation, useSearch } from "wouter-preact";
import type { DataAnswer } from "../../api/types";
import { Button } from "../../components/button";
import { Empty, Failed } from "../../components/states";
import type { DashboardDoc, Param } from "./document";
import { FullScreenHead, PanelFrame } from "./panel-frame";
import { Control } from "./param-controls";
import { dataQuery } from "./queries";
import { placementsOf } from "./placement";
import { chosenText, choicesOf, optionsOf, searchOf, type Choices, type Chosen } from "./values";
import type { Arrange, ArrangedGrid } from "./arrange";
import "./board.css";

interface BoardProps {
  slug: string;
  name: string;
  draft: boolean;
  etag: string | null;
  document: DashboardDoc;
}

/** Values of the filters in the URL; each change is a history entry. */
function useChoices(params: Param[]) {
  const search = useSearch();
  const [path, go] = useLocation();
  const choices = useMemo(() => choicesOf(params, search), [params, search]);
  const set = useCallback(
    (next: Choices) => {
      const query = searchOf(params, next, search);
      go(query ? `${path}?${query}` : path);
    },
    [params, search, path, go],
  );
  return { choices, set };
}

export function useData({ slug, name, draft, etag, document }: BoardProps) {
  const { choices, set } = useChoices(document.params);
  const data = useQuery(dataQuery(slug, name, { draft, etag, choices }));
  return { data, choices, set };
}

interface RowProps {
  params: Param[];
  choices: Choices;
  answer: DataAnswer | undefined;
  set: (next: Choices) => void;
}

function Params({ params, choices, answer, set }: RowProps) {
  const [open, setOpen] = useState(false);
  if (params.length === 0) return null;
  const currentValue = (param: Param): unknown => {
    const chosen = choices[param.name];
    const applied = answer?.params[param.name];
    // The response resolves a named range to dates.
    if (chosen === undefined || typeof chosen === "string")
      return applied ?? (param.type === "date_range" ? (answer ? null : undefined) : chosen);
    return chosen;
  };
  const chosen = (param: Param) => chosenText(currentValue(param), param, optionsOf(answer?.options[param.name]));
  const choose = (param: Param, value: Chosen) => set({ ...choices, [param.name]: value });
  return (
    <div class={`dash-params ${open ? "open" : ""}`} role="group" aria-label="Filters">
      <button type="button" class="dash-params-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <ChevronDown aria-hidden="true" />
        <span class="cut">Filters: {params.map((param) => `${param.title}: ${chosen(param)}`).join(", ")}</span>
      </button>
      {params.map((param) => (
        <Control
          key={param.name}
          param={param}
          value={currentValue(param)}
          options={optionsOf(answer?.options[param.name])}
          onChoose={(value) => choose(param, value)}
        />
      ))}
      <Button variant="quiet" icon={<RotateCcw />} disabled={Object.keys(choices).length === 0} onClick={() => set({})}>
        Reset
      </Button>
      {/* In print, in place of the controls. */}
      <dl class="dash-params-print">
        {params.map((param) => (
          <div key={param.name}>
            <dt>{param.title}:</dt> <dd>{chosen(param)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

type Loaded = ReturnType<typeof useData>;

/** Filters and panels of a stored document. */
export function Board({
  slug,
  document,
  loaded,
  arrange,
  extra,
  empty,
}: Pick<BoardProps, "slug" | "document"> & {
  loaded: Loaded;
  /** For the editor. */
  arrange?: { Grid: typeof ArrangedGrid; arrange: Arrange; pending: boolean };
  /** Beside the filters. */
  extra?: ComponentChildren;
  empty?: ComponentChildren;
}) {
  const { data, choices, set } = loaded;
  const answer = data.data;
  const placements = useMemo(() => placementsOf(document.panels), [document.panels]);
  if (data.isError && !data.isPlaceholderData && !answer) {
    return (
      <div class="dash-board">
        <Params params={document.params} choices={choices} answer={answer} set={set} />
        <Failed
          title="Couldn't load the panels"
          error={data.error}
          onRetry={() => void data.refetch()}
          actions={Object.keys(choices).length > 0 && <Button onClick={() => set({})}>Reset filters</Button>}
        />
      </div>
    );
  }
  return (
    <div class="dash-board">
      <FullScreenHead title={document.title} />
      <Params params={document.params} choices={choices} answer={answer} set={set} />
      {extra}
      {data.isError && (
        <div class="note bad" role="alert">
          {data.error.message}. Showing earlier data.
        </div>
      )}
      {document.panels.length === 0 && empty ? (
        empty
      ) : document.panels.length === 0 ? (
        <Empty title="This dashboard has no panels yet">Edit the dashboard to add charts, tables and text.</Empty>
      ) : arrange ? (
        <arrange.Grid
          slug={slug}
          document={document}
          answer={answer}
          busy={data.isPlaceholderData}
          pending={arrange.pending}
          arrange={arrange.arrange}
        />
      ) : (
        <div class="dash-grid" data-busy={data.isFetching ? "" : undefined}>
          {document.panels.map((panel) => (
            <PanelFrame
              key={panel.id}
              slug={slug}
              document={document}
              panel={panel}
              place={placements.get(panel.id) ?? { span: panel.width, half: false }}
              answer={answer}
              busy={data.isPlaceholderData}
            />
          ))}
        </div>
      )}
    </div>
  );
}
