/** Dialogs that add and edit panels. */
import { useQuery } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import type { Document } from "yaml";
import { asFailure } from "../../api/failure";
import { keys, tablesQuery } from "../../api/queries";
import type { QueryAnswer, Row, Table } from "../../api/types";
import { textWith } from "../../boards/add";
import Builder from "../../boards/builder";
import type { Known } from "../../boards/builder/change";
import { type Aggregate, type ChartChoice, freeTitle, isAutomatic, titleOf } from "../../boards/builder/choice";
import { nameFrom, panelOf } from "../../boards/builder/panel";
import { firstChoice } from "../../boards/builder/pick";
import { ran } from "../../api/sql";
import { profileRows, profileTable } from "../../boards/builder/profile";
import * as yaml from "../../boards/yaml";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { SelectField, TextField } from "../../components/field";
import { Note, Skeleton } from "../../components/states";
import type { Panel } from "./document";

const ROWS_MAX = 10_000;

interface Shared {
  slug: string;
  /** The parsed document. */
  value: unknown;
  /** Puts the values of parameters into SQL. */
  filled: (sql: string) => string;
  onClose: () => void;
}

function useKnownTable(slug: string, table: Table | undefined): { known: Known | undefined; error: Error | null } {
  const { data, error } = useQuery({
    queryKey: [...keys.table(slug, table?.name ?? ""), "profile"],
    queryFn: ({ signal }) => profileTable(slug, table ?? { name: "", rows: 0, schema: [] }, signal),
    enabled: table !== undefined,
    staleTime: 30_000,
  });
  const known = useMemo(() => (table && data ? { columns: table.schema, profile: data } : undefined), [table, data]);
  return { known, error };
}

/** Adds a chart of a table. */
export function NewPanel({
  slug,
  value,
  filled,
  text,
  onAdd,
  onClose,
}: Shared & { text: string; onAdd: (text: string, id: string) => void }) {
  const { data } = useQuery(tablesQuery(slug));
  const tables = data?.tables.filter(({ system }) => !system) ?? [];
  const [picked, setPicked] = useState<string>();
  const table = tables.find(({ name }) => name === picked) ?? tables.find(({ rows }) => rows > 0) ?? tables[0];
  const { known, error } = useKnownTable(slug, table);
  const [changed, setChanged] = useState<ChartChoice>();
  const [typed, setTyped] = useState<string>();
  const [failed, setFailed] = useState<string>();
  const [max, setMax] = useState<number>();
  const own =
    table && changed && "table" in changed.source && changed.source.table === table.name ? changed : undefined;
  const base = own ?? (table && known && firstChoice(table.name, known.profile));
  const choice = base && table ? yaml.withParams(base, yaml.paramsOf(value, table.name)) : undefined;
  const automatic = choice ? freeTitle(titleOf(choice), yaml.panelTitles(value), choice.kind) : "";
  const title = typed ?? automatic;
  const add = (sql: string) => {
    if (!choice) return;
    try {
      const made = textWith(text, { choice, sql, title: title.trim() || automatic, max });
      onAdd(made.text, made.id);
    } catch (thrown) {
      setFailed(asFailure(thrown).message);
    }
  };
  const [made, setMade] = useState<string>();
  const [pending, setPending] = useState(false);
  return (
    <Dialog
      title="Add chart"
      kind="wide"
      onClose={onClose}
      unsaved={changed || typed !== undefined || pending ? "the new chart" : undefined}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" disabled={made === undefined} onClick={() => made !== undefined && add(made)}>
            Add chart
          </Button>
        </>
      }
    >
      <div class="dash-build">
        {failed && <Note tone="bad">Couldn't add the chart: {failed}.</Note>}
        <div class="dash-build-head">
          <SelectField
            label="Table"
            value={table?.name ?? ""}
            onChange={(event) => setPicked(event.currentTarget.value)}
          >
            {tables.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </SelectField>
          <TextField
            label="Title"
            value={title}
            maxLength={200}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        {error && !known ? (
          <Note tone="bad">Couldn't load the columns: {asFailure(error).message}.</Note>
        ) : data && tables.length === 0 ? (
          <Note>This pipeline has no tables yet. Run it first.</Note>
        ) : !choice || !known ? (
          <Skeleton lines={9} label="Chart" />
        ) : (
          <Builder
            slug={slug}
            choice={choice}
            known={known}
            filled={filled}
            onChange={setChanged}
            onPending={setPending}
            onMade={(sql, most) => {
              setMade(sql);
              setMax(most);
            }}
          />
        )}
      </div>
    </Dialog>
  );
}

interface Start {
  choice: ChartChoice;
  known: Known;
  given: QueryAnswer | undefined;
}

const AGGREGATES: Record<string, Aggregate> = {
  sum: "sum",
  avg: "avg",
  min: "min",
  max: "max",
  median: "median",
  count: "count",
  count_distinct: "distinct",
};

/** Whether the builder's fields can say what a panel shows. */
export const isByFields = (panel: Panel): boolean =>
  panel.type === "pivot"
    ? [panel.rows, panel.columns, panel.values].every(({ length }) => length <= 1)
    : panel.type !== "broken";

/** The chart of a panel whose query people wrote. */
function choiceOfPanel(panel: Panel, sql: string, columns: Known["columns"]): ChartChoice {
  const typeOf = (name: string) => columns.find((one) => one.name === name)?.type ?? "string";
  const by = (column: string) => ({ by: { column, type: typeOf(column) } });
  const measure = (name: string) => ({ measure: name, measureType: typeOf(name) });
  const split = (name: string | undefined) => (name ? { split: { column: name, type: typeOf(name) } } : {});
  const source = { sql };
  switch (panel.type) {
    case "line":
    case "area":
    case "bar": {
      const [first, ...rest] = panel.y.map(({ field }) => field);
      return {
        source,
        kind: panel.type === "bar" && panel.stacked ? "stacked" : panel.type,
        aggregate: "none",
        ...measure(first ?? ""),
        ...by(panel.x),
        ...split(panel.series),
        ...(rest.length > 0 ? { more: rest } : {}),
      };
    }
    case "pie":
      return { source, kind: "pie", aggregate: "none", ...measure(panel.y.field), ...by(panel.x) };
    case "scatter":
      return {
        source,
        kind: "scatter",
        aggregate: "none",
        ...measure(panel.y.field),
        ...by(panel.x.field),
        ...split(panel.series),
      };
    case "heatmap":
      return {
        source,
        kind: "heatmap",
        aggregate: "none",
        ...measure(panel.value.field),
        ...by(panel.x),
        ...split(panel.y),
      };
    case "kpi":
      return {
        source,
        kind: "number",
        aggregate: AGGREGATES[panel.value.aggregate ?? ""] ?? "max",
        ...measure(panel.value.field),
        ...(panel.value.format ? { format: panel.value.format } : {}),
      };
    case "pivot": {
      const [down, across, value] = [panel.rows[0]?.field ?? "", panel.columns[0]?.field, panel.values[0]?.field ?? ""];
      return {
        source,
        kind: "pivot",
        aggregate: AGGREGATES[panel.values[0]?.aggregate ?? "sum"] ?? "sum",
        ...measure(value),
        ...by(down),
        ...split(across),
      };
    }
    case "table":
    case "markdown":
    case "broken":
      return { source, kind: "table", aggregate: "none" };
  }
}

type RawPanel = Record<string, unknown>;

function rawPanel(value: unknown, id: string): RawPanel {
  const { panels } = (value ?? {}) as { panels?: unknown };
  const list = Array.isArray(panels) ? (panels as (RawPanel | null)[]) : [];
  return list.find((one, at) => (one?.id ?? `panel-${at + 1}`) === id) ?? {};
}

const fieldsOf = (value: unknown): string =>
  JSON.stringify(
    [value].flat().map((one) => (typeof one === "object" && one !== null && "field" in one ? one.field : one)),
  );

/** The fields, those that stay as people wrote them. */
const withFields = (made: unknown, before: unknown): unknown[] =>
  [made].flat().map((one) => [before].flat().find((old) => fieldsOf(old) === fieldsOf(one)) ?? one);

/** Keeps titles and formats that people gave to fields that stay. */
function withKept(made: RawPanel, before: RawPanel): RawPanel {
  const kept = { ...made };
  const names = made.type === "pivot" ? ["rows", "columns"] : ["x", "y", "value"];
  for (const name of names)
    if (name in before && name in made && fieldsOf(before[name]) === fieldsOf(made[name])) kept[name] = before[name];
  if (made.type === "table" && before.type === "table" && before.columns !== undefined)
    kept.columns = made.columns === undefined ? before.columns : withFields(made.columns, before.columns);
  return kept;
}

const queryOf = (panel: Panel): string => ("query" in panel ? panel.query : "");

interface PanelProps extends Shared {
  panel: Panel;
  onApply: (edit: (document: Document) => void) => void;
}

/** Edits what a panel shows. */
export function PanelDialog(props: PanelProps) {
  const { slug, panel, value, filled } = props;
  const query = queryOf(panel);
  const sql = yaml.sqlOf(value, query);
  const storedChoice = useMemo(() => yaml.choiceOfQuery(value, query), [value, query]);
  const { data: listed } = useQuery(tablesQuery(slug));
  const source = storedChoice?.source;
  const table = source && "table" in source ? listed?.tables.find(({ name }) => name === source.table) : undefined;
  const { known, error } = useKnownTable(slug, table);
  const isWritten = storedChoice === undefined || (source && "sql" in source);
  const inner = source && "sql" in source ? source.sql : (sql ?? "");
  const asked = useQuery({
    queryKey: [...keys.tables(slug), "chart", filled(inner)],
    queryFn: ({ signal }) => ran(slug, filled(inner), signal, ROWS_MAX),
    enabled: Boolean(isWritten) && inner !== "",
    staleTime: 30_000,
    retry: false,
  });
  const start = useMemo<Start | undefined>(() => {
    if (storedChoice && table) return known && { choice: storedChoice, known, given: undefined };
    const answer = asked.data;
    if (!isWritten || !answer) return undefined;
    const columns = answer.columns;
    const own = { columns, profile: profileRows(answer.rows as Row[], columns) };
    return { choice: storedChoice ?? choiceOfPanel(panel, inner, columns), known: own, given: answer };
  }, [storedChoice, table, known, asked.data, isWritten, panel, inner]);
  const failure = asked.error ?? (known ? null : error);
  if (start) return <Editing {...props} start={start} />;
  return (
    <Dialog title={`Edit ${panel.title || panel.id}`} kind="wide" onClose={props.onClose}>
      {failure || (isWritten && inner === "") ? (
        <Note tone="bad">
          Couldn't load the data of the panel: {failure ? asFailure(failure).message : "it has no query"}.
        </Note>
      ) : storedChoice && listed && !table ? (
        <Note tone="bad">The table of the panel doesn't exist any more. Edit its query in the YAML.</Note>
      ) : (
        <Skeleton lines={10} label="Chart" />
      )}
    </Dialog>
  );
}

function Editing({ slug, panel, value, filled, start, onClose, onApply }: PanelProps & { start: Start }) {
  const [choice, setChoice] = useState(start.choice);
  // An automatic title follows the chart until another is typed.
  const [typed, setTyped] = useState(isAutomatic(panel.title, start.choice) ? undefined : panel.title);
  const [made, setMade] = useState<{ sql: string; max: number | undefined }>();
  const [pending, setPending] = useState(false);
  const changed = JSON.stringify(choice) !== JSON.stringify(start.choice);
  const others = useMemo(() => yaml.panelTitles(value).filter((title) => title !== panel.title), [value, panel.title]);
  const shownTitle = typed ?? (changed ? freeTitle(titleOf(choice), others, choice.kind) : panel.title);
  const query = queryOf(panel);
  const apply = () => {
    const sql = made?.sql ?? "";
    onApply((document) => {
      if (!changed) return yaml.retitlePanel(document, panel.id, shownTitle);
      const isNew = sql !== yaml.sqlOf(value, query);
      const name =
        isNew && isShared(value, query, panel.id) ? nameFrom(shownTitle || panel.id, yaml.queryNames(document)) : query;
      const before = rawPanel(value, panel.id);
      const fields = panelOf(choice, { id: panel.id, title: shownTitle, query: name, width: panel.width }, made?.max);
      if (!shownTitle) delete fields.title;
      const isSource = "sql" in choice.source && choice.source.sql.trim() === sql.trim();
      const own = isNew || !isSource ? { name, sql, choice: isSource ? undefined : choice } : undefined;
      return yaml.replacePanel(document, panel.id, withKept(fields, before), own);
    });
  };
  return (
    <Dialog
      title={`Edit ${panel.title || panel.id}`}
      kind="wide"
      onClose={onClose}
      unsaved={changed || pending || shownTitle !== panel.title ? `the chart ${panel.title || panel.id}` : undefined}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" disabled={(changed || pending) && made === undefined} onClick={apply}>
            Apply
          </Button>
        </>
      }
    >
      <div class="dash-build">
        <div class="dash-build-head">
          <TextField
            label="Title"
            value={shownTitle}
            maxLength={200}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        <Builder
          slug={slug}
          choice={choice}
          known={start.known}
          given={start.given}
          filled={filled}
          onChange={setChoice}
          onPending={setPending}
          onMade={(sql, max) => setMade(sql === undefined ? undefined : { sql, max })}
        />
      </div>
    </Dialog>
  );
}

/** Whether other panels or parameters use the query. */
function isShared(value: unknown, query: string, id: string): boolean {
  const { panels, params } = (value ?? {}) as { panels?: unknown; params?: unknown };
  const others = (Array.isArray(panels) ? (panels as (RawPanel | null)[]) : []).filter(
    (one) => one?.query === query && one.id !== id,
  );
  const options = (Array.isArray(params) ? (params as (RawPanel | null)[]) : []).filter(
    (one) => (one?.options as RawPanel | undefined)?.query === query,
  );
  return others.length + options.length > 0;
}

/** Adds or edits a text. */
export function TextDialog({
  panel,
  onApply,
  onClose,
}: {
  panel: Panel | undefined;
  onApply: (title: string, text: string) => void;
  onClose: () => void;
}) {
  const [startTitle, startText] = [panel?.title ?? "", panel?.type === "markdown" ? panel.text : ""];
  const [title, setTitle] = useState(startTitle);
  const [text, setText] = useState(startText);
  return (
    <Dialog
      title={panel ? `Edit ${panel.title || panel.id}` : "Add text"}
      onClose={onClose}
      unsaved={title !== startTitle || text !== startText ? "the text" : undefined}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" disabled={!text.trim()} onClick={() => onApply(title.trim(), text)}>
            {panel ? "Apply" : "Add text"}
          </Button>
        </>
      }
    >
      <div class="stack">
        <TextField
          label="Title"
          hint="Optional"
          value={title}
          maxLength={200}
          onInput={(event) => setTitle(event.currentTarget.value)}
        />
        <label class="field">
          <span>Text (Markdown)</span>
          <textarea
            class="input dash-text"
            rows={8}
            maxLength={20_000}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      </div>
    </Dialog>
  );
}
