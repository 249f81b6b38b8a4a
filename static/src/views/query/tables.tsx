import { useSignal } from "@preact/signals";
import { useQuery } from "@tanstack/preact-query";
import { ChevronDown, ChevronRight } from "lucide-preact";
import { useRef } from "preact/hooks";
import { tablesQuery } from "../../api/queries";
import type { Table } from "../../api/types";
import { TextField } from "../../components/field";
import { Failed, Skeleton } from "../../components/states";
import { compact, counted } from "../../format/number";
import { identifier } from "../../format/sql";
import { emptyCells, typeWords } from "../../format/types";
import { useShortcuts } from "../../browser/shortcuts";
import { StateNotice } from "../../shell/state-notice";
import { OtherPipelines } from "./others";

/** From this number of tables and columns on, a search field is shown. */
const UNSEARCHED_MAX = 12;

/** Tables with matching columns, or with all columns if the table matches. */
function matching(tables: Table[], text: string): Table[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return tables;
  return tables.flatMap((table) => {
    if (table.name.toLowerCase().includes(wanted)) return [table];
    const schema = table.schema.filter(({ name }) => name.toLowerCase().includes(wanted));
    return schema.length > 0 ? [{ ...table, schema }] : [];
  });
}

/** Tables and columns; a click inserts the name. */
export function TableList({ slug, onInsert }: { slug: string; onInsert: (text: string) => void }) {
  const { data, error, refetch } = useQuery(tablesQuery(slug));
  const open = useSignal<ReadonlySet<string>>(new Set());
  const filter = useSignal("");
  const box = useRef<HTMLDivElement>(null);
  useShortcuts([
    { keys: "/", does: "Search tables and columns", run: () => box.current?.querySelector("input")?.focus() },
  ]);
  if (error && !data) return <Failed title="Couldn't load the tables" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton lines={6} />;
  const tables = [...data.tables].sort((a, b) => Number(a.system) - Number(b.system));
  const names = tables.reduce((sum, { schema }) => sum + 1 + schema.length, 0);
  const found = matching(tables, filter.value);
  const isOpen = (name: string) => open.value.has(name) || filter.value.trim() !== "" || tables.length === 1;
  const toggle = (name: string) => {
    const next = new Set(open.value);
    if (!next.delete(name)) next.add(name);
    open.value = next;
  };
  return (
    <div ref={box}>
      <StateNotice slug={slug} />
      {names > UNSEARCHED_MAX && (
        <div class="query-find">
          <TextField
            label="Search tables and columns"
            bare
            type="search"
            placeholder="Search tables and columns"
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
          />
        </div>
      )}
      {found.length === 0 && <p class="query-none dim">No matching tables or columns.</p>}
      <ul class="query-tables">
        {found.map((table) => (
          <TableItem
            key={table.name}
            table={table}
            open={isOpen(table.name)}
            onToggle={() => toggle(table.name)}
            onInsert={onInsert}
          />
        ))}
      </ul>
      <OtherPipelines slug={slug} onInsert={onInsert} />
    </div>
  );
}

interface ItemProps {
  table: Table;
  open: boolean;
  onToggle: () => void;
  onInsert: (text: string) => void;
}

function TableItem({ table, open, onToggle, onInsert }: ItemProps) {
  return (
    <li>
      <div class="query-table">
        <button
          type="button"
          class="query-fold"
          aria-expanded={open}
          aria-label={`Columns of ${table.name}`}
          onClick={onToggle}
        >
          {open ? <ChevronDown /> : <ChevronRight />}
        </button>
        <button
          type="button"
          class="query-put"
          title={`Insert ${identifier(table.name)}`}
          onClick={() => onInsert(identifier(table.name))}
        >
          <span class="cut grow">{table.name}</span>
          <span class="num dim" title={counted(table.rows, "row")}>
            {compact(table.rows)}
          </span>
        </button>
      </div>
      {open && (
        <ul class="query-columns">
          {table.schema.map(({ name, type, nullable }) => (
            <li key={name}>
              <button
                type="button"
                class="query-put"
                title={`${name}: ${type}, empty cells ${emptyCells(nullable)}`}
                onClick={() => onInsert(identifier(name))}
              >
                <span class="cut grow">{name}</span>
                <span class="dim">{typeWords(type)}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
