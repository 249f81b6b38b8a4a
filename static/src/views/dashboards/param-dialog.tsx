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
import { SelectField, TextField } from "../../components/field";
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
  const used = all.filter(({ name }) => yaml.builderQueriesOf(value, name).size > 0);
  const tables = used.length > 0 ? used : all;
  const [picked, setPicked] = useState<string>();
  const [column, setColumn] = useState<string>();
  const [typed, setTyped] = useState<string>();
  const table = tables.find(({ name }) => name === picked) ?? tables[0];
  const columns = table?.schema ?? [];
  const chosen = columns.find(({ name }) => name === column) ?? likelyColumn(columns, hintsOf(value));
  const kind = kindOf(chosen?.type ?? "string");
  const charts = table ? yaml.builderQueriesOf(value, table.name).size : 0;
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
      const query = {
        name: options,
        sql: `SELECT DISTINCT ${textOrEmpty(chosen.name)} AS value FROM ${identifier(table.name)} ORDER BY 1 LIMIT ${OPTIONS_MAX}`,
      };
      yaml.addParam(document, param, kind === "select" ? query : undefined);
      const use: ParamUse = { param: name, kind, column: chosen.name, ...(kind === "select" ? { empty: true } : {}) };
      yaml.changeUses(document, ({ source, params = [] }) =>
        "table" in source && source.table === table.name ? [...params, use] : undefined,
      );
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
        <SelectField label="Table" value={table?.name ?? ""} onChange={(event) => setPicked(event.currentTarget.value)}>
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
              : `Applies to ${counted(charts, "chart")} of ${table.name}. Charts whose SQL was written by hand don't change.`}
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
