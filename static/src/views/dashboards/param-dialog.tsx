/** Adds filters of a dashboard (parameters of the document) from columns, and removes them. */
import { useQuery } from "@tanstack/preact-query";
import { ListX } from "lucide-preact";
import { useState } from "preact/hooks";
import type { Document } from "yaml";
import { tablesQuery } from "../../api/queries";
import type { ParamUse } from "../../boards/builder/choice";
import { nameFrom } from "../../boards/builder/panel";
import * as yaml from "../../boards/yaml";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Checkbox, SelectField, TextField } from "../../components/field";
import { Menu } from "../../components/menu";
import { Note } from "../../components/states";
import { isNaming, words } from "../../format/naming";
import { counted } from "../../format/number";
import { identifier, textOrEmpty } from "../../format/sql";
import { familyOf } from "../../format/values";
import type { Param } from "./document";

const OPTIONS_MAX = 1_000;

/** The kind of filter for a column. */
const kindOf = (type: string): ParamUse["kind"] =>
  isTime(type) ? "date_range" : familyOf(type) === "number" ? "number" : "select";

const isTime = (type: string): boolean => /^(?:date|timestamp)/i.test(type);

/** The column that a filter is most likely for: a time, then a category; identifiers come last. */
export function likelyColumn<C extends { name: string; type: string }>(
  columns: readonly C[],
  used: readonly unknown[],
): C | undefined {
  const rank = ({ name, type }: C): number =>
    used.includes(name)
      ? 5
      : words(name).some((word) => IDENTIFIERS.has(word)) || isNaming(name, type)
        ? 4
        : isTime(type)
          ? 1
          : /^(?:string|varchar|bool)/i.test(type)
            ? 2
            : 3;
  return [...columns].sort((a, b) => rank(a) - rank(b))[0];
}
const IDENTIFIERS = new Set(["id", "ids", "uuid", "guid", "key", "hash", "email", "url"]);

interface Table {
  name: string;
  schema: readonly { name: string; type: string }[];
}

/** Columns that one filter fits, by table: of the same name, ignoring case as SQL does, and of the same kind. */
export function fittingColumns(tables: readonly Table[], { name, type }: Table["schema"][number]): Map<string, string> {
  const fits = (one: Table["schema"][number]) =>
    one.name.toLowerCase() === name.toLowerCase() && kindOf(one.type) === kindOf(type);
  return new Map(
    tables.flatMap(({ name: table, schema }) => schema.filter(fits).map((one) => [table, one.name] as const)),
  );
}

/** Why no column of a table fits a filter. */
const unfitText = (schema: Table["schema"], { name }: Table["schema"][number]): string =>
  schema.some((one) => one.name.toLowerCase() === name.toLowerCase())
    ? `its ${name} is of another kind`
    : `no column ${name}`;

/** The statement of a filter's options: the values of the columns, by table. */
export function optionsSql(columns: ReadonlyMap<string, string>): string {
  const parts = [...columns].map(([table, column]) => `${textOrEmpty(column)} AS value FROM ${identifier(table)}`);
  return `SELECT DISTINCT ${parts.join("\nUNION SELECT ")} ORDER BY 1 LIMIT ${OPTIONS_MAX}`;
}

/** Number of panels whose query the builder created from the table. */
function chartsOf(value: unknown, table: string): number {
  const { panels } = (value ?? {}) as { panels?: unknown };
  const queries: ReadonlyMap<unknown, unknown> = yaml.builderQueriesOf(value, table);
  return Array.isArray(panels)
    ? (panels as ({ query?: unknown } | null)[]).filter((one) => queries.has(one?.query)).length
    : 0;
}

const listed = (names: string[]): string => new Intl.ListFormat("en").format(names);

const USE_LABELS: Record<ParamUse["kind"], string> = {
  date_range: "Viewers choose a range of days.",
  select: "Viewers choose one or more values.",
  number: "Viewers choose a minimum.",
  text: "Viewers type a part of the text.",
};

interface Props {
  slug: string;
  value: unknown;
  onApply: (edit: (document: Document) => void) => void;
  onClose: () => void;
}

function paramsOf(value: unknown): { name?: unknown; column_hint?: unknown }[] {
  const { params } = (value ?? {}) as { params?: unknown };
  return Array.isArray(params) ? (params as (object | null)[]).map((one) => one ?? {}) : [];
}

const namesOf = (value: unknown): string[] => paramsOf(value).map(({ name }) => String(name));

/** Columns that have a filter. */
const hintsOf = (value: unknown): unknown[] => paramsOf(value).flatMap((one) => [one.column_hint, one.name]);

export function ParamDialog({ slug, value, onApply, onClose }: Props) {
  const { data } = useQuery(tablesQuery(slug));
  const all = data?.tables.filter(({ system }) => !system) ?? [];
  const counts = new Map(all.map(({ name }) => [name, chartsOf(value, name)]));
  const countOf = (name: string): number => counts.get(name) ?? 0;
  const used = all.filter(({ name }) => countOf(name) > 0);
  const tables = used.length > 0 ? used : all;
  const [picked, setPicked] = useState<string>();
  const [column, setColumn] = useState<string>();
  const [typed, setTyped] = useState<string>();
  const [unticked, setUnticked] = useState<string[]>([]);
  const table = tables.find(({ name }) => name === picked) ?? tables[0];
  const columns = table?.schema ?? [];
  const chosen = columns.find(({ name }) => name === column) ?? likelyColumn(columns, hintsOf(value));
  const kind = kindOf(chosen?.type ?? "string");
  const others = used.filter(({ name }) => name !== table?.name);
  const fitting = chosen ? fittingColumns(others, chosen) : new Map<string, string>();
  const filtered = new Map([
    ...(table && chosen ? [[table.name, chosen.name] as const] : []),
    ...[...fitting].filter(([name]) => !unticked.includes(name)),
  ]);
  const unchanged = others
    .filter(({ name }) => !filtered.has(name))
    .map(({ name, schema }) => (chosen && !fitting.has(name) ? `${name} (${unfitText(schema, chosen)})` : name));
  const left = all.filter((one) => !tables.includes(one)).map(({ name }) => name);
  const charts = [...filtered.keys()].reduce((sum, name) => sum + countOf(name), 0);
  const title =
    typed ?? (chosen ? chosen.name.charAt(0).toUpperCase() + chosen.name.slice(1).replaceAll("_", " ") : "");
  const apply = () => {
    if (!table || !chosen) return;
    const name = nameFrom(chosen.name, namesOf(value));
    onApply((document) => {
      const param: Record<string, unknown> = {
        name,
        title: title.trim() || chosen.name,
        type: kind,
        column_hint: chosen.name,
      };
      const options = nameFrom(`${chosen.name}_options`, yaml.queryNames(document));
      if (kind === "select") Object.assign(param, { multiple: true, options: { query: options } });
      yaml.addParam(document, param, kind === "select" ? { name: options, sql: optionsSql(filtered) } : undefined);
      yaml.changeUses(document, ({ source, params = [] }) => {
        const own = "table" in source ? filtered.get(source.table) : undefined;
        if (own === undefined) return undefined;
        return [...params, { param: name, kind, column: own, ...(kind === "select" ? { empty: true } : {}) }];
      });
    });
  };
  return (
    <Dialog
      title="Add filter"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" disabled={!chosen} onClick={apply}>
            Add filter
          </Button>
        </>
      }
    >
      <div class="stack">
        <SelectField
          label="Table"
          hint={
            left.length > 0 &&
            `Without ${listed(left)}: no chart here was made from ${left.length === 1 ? "it" : "them"}.`
          }
          value={table?.name ?? ""}
          onChange={(event) => setPicked(event.currentTarget.value)}
        >
          {tables.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </SelectField>
        <SelectField
          label="Column"
          hint={USE_LABELS[kind]}
          value={chosen?.name ?? ""}
          onChange={(event) => setColumn(event.currentTarget.value)}
        >
          {columns.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </SelectField>
        {[...fitting].map(([name, own]) => (
          <Checkbox
            key={name}
            label={`Also filter the ${countOf(name) === 1 ? "chart" : counted(countOf(name), "chart")} of ${name} (${own})`}
            checked={filtered.has(name)}
            onChange={(event) =>
              setUnticked(event.currentTarget.checked ? unticked.filter((one) => one !== name) : [...unticked, name])
            }
          />
        ))}
        <TextField
          label="Title"
          value={title}
          maxLength={200}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        {table && (
          <Note tone={charts === 0 ? "warn" : "neutral"}>
            {charts === 0
              ? `No chart of ${table.name} was made here, so the filter changes nothing yet. Use it in the SQL of your queries.`
              : `Applies to ${counted(charts, "chart")} of ${listed([...filtered.keys()])}. Charts ${
                  unchanged.length > 0
                    ? `of ${listed(unchanged)}, and charts whose SQL was written by hand,`
                    : "whose SQL was written by hand"
                } don't change.`}
          </Note>
        )}
      </div>
    </Dialog>
  );
}

export function ParamsMenu({ params, onRemove }: { params: Param[]; onRemove: (name: string) => void }) {
  return (
    <Menu
      label="Remove a filter"
      look="plain"
      button={<ListX />}
      class="icon-only"
      items={params.map(({ name, title }) => ({
        label: `Remove ${title}`,
        danger: true,
        onSelect: () => onRemove(name),
      }))}
    />
  );
}
