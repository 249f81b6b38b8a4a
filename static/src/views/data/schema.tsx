import { isNaming } from "../../format/naming";
import { plain } from "../../format/values";
import { useQuery } from "@tanstack/preact-query";
import { Pencil, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { asFailure } from "../../api/failure";
import { commitsQuery, statsQuery } from "../../api/queries";
import type { Cell, ColumnStats, Table } from "../../api/types";
import { Distribution } from "../../boards/distribution";
import { profileTable } from "../../boards/builder/profile";
import { summarizeTable } from "../../boards/summary";
import { Button, IconButton } from "../../components/button";
import type { GridColumn } from "../../components/grid";
import { shown } from "../../components/grid/value";
import { Note } from "../../components/states";
import { count, counted, share } from "../../format/number";
import { emptyCells, typeWords } from "../../format/types";
import { AddPathColumn } from "../../tables/add-path-column";
import { useUnits, withUnits } from "../../tables/units";

function Extreme({ value, column, format }: { value: Cell; column: ColumnStats; format?: GridColumn["format"] }) {
  if (value === null) return <span class="dim">–</span>;
  const { text: usual, kind } = shown(value, column.type, isNaming(column.name, column.type));
  const text = format?.(value) ?? usual;
  const [date, time] = /^[\d-]+T/.test(text) ? text.split(/(?<=T)/) : [];
  return (
    <span class={kind === "number" ? "num" : "mono"} title={plain(value)}>
      {time === undefined ? (
        text
      ) : (
        <>
          <span class="data-date">{date}</span>
          <wbr />
          {time}
        </>
      )}
    </span>
  );
}

/** The type in words, with the exact one below it, where that says more. */
function TypeName({ type }: { type: string }) {
  const words = typeWords(type);
  return (
    <>
      {words} {words !== type && <code class="dim data-type">{type}</code>}
    </>
  );
}

function Nulls({ nulls, rows }: { nulls: number | null; rows: number }) {
  if (nulls === null || rows === 0) return <span class="dim">–</span>;
  return (
    <span class="data-nulls" title={counted(nulls, "null")}>
      <span class="num">{nulls > 0 && nulls / rows < 0.001 ? "<0.1%" : share(nulls / rows)}</span>
      <span class="data-nulls-bar" aria-hidden="true">
        <span style={{ width: `${(nulls / rows) * 100}%` }} />
      </span>
    </span>
  );
}

/** Summaries of a version of the table, computed once in this browser. */
function useSummaries(slug: string, table: Table) {
  const { data: commits } = useQuery(commitsQuery(slug, table.name));
  const version = commits ? (commits.commits[0]?.sequence ?? 0) : undefined;
  const { data, error } = useQuery({
    queryKey: ["p", slug, "summaries", table.name, version],
    queryFn: async ({ signal }) => summarizeTable(slug, table.name, await profileTable(slug, table, signal), signal),
    enabled: table.rows > 0 && version !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return { summaries: new Map(data?.map((one) => [one.name, one])), failure: error };
}

/** Columns of a table with statistics. `onEdit`: undefined if they aren't those of a config. */
export function Schema({
  slug,
  table,
  onEdit,
  onRun,
}: {
  slug: string;
  table: Table;
  onEdit: ((column: string) => void) | undefined;
  onRun: () => void;
}) {
  const [isAdding, setIsAdding] = useState(false);
  const { data: stats, error, isPending } = useQuery({ ...statsQuery(slug, table.name), enabled: table.rows > 0 });
  const known = new Map(stats?.columns.map((column) => [column.name, column]));
  const waiting = table.rows > 0 && isPending;
  const failure = error && asFailure(error);
  const hasStats = waiting || stats !== undefined;
  const units = useUnits(slug, table.name);
  const { summaries, failure: unsummarized } = useSummaries(slug, table);
  return (
    <div class="data-page">
      {failure && failure.status !== 404 && <Note tone="warn">Couldn't load column statistics: {failure.message}</Note>}
      {stats && !stats.complete && (
        <Note>
          Statistics cover {count(stats.files_read)} of {counted(stats.files_total, "Parquet file")}.
        </Note>
      )}
      {unsummarized && <Note tone="warn">Couldn't summarize the columns: {asFailure(unsummarized).message}</Note>}
      <div class="table-box" tabIndex={0} role="group" aria-label={`Columns of ${table.name}`}>
        <table class="table stacks data-schema">
          <thead>
            <tr>
              <th class="num">#</th>
              <th>Column</th>
              <th>Type</th>
              <th class="data-empty">Empty cells</th>
              {hasStats && (
                <>
                  <th>Nulls</th>
                  <th>Min</th>
                  <th>Max</th>
                </>
              )}
              <th class="num">Distinct</th>
              <th>Values</th>
            </tr>
          </thead>
          <tbody>
            {withUnits(table.schema, units).map((column, at) => {
              const own = known.get(column.name);
              const summary = summaries.get(column.name);
              const nothing = <span class="dim">{waiting ? "…" : "–"}</span>;
              return (
                <tr key={column.name}>
                  <td class="num dim data-schema-number">{at + 1}</td>
                  <td class="whole">
                    <span class="row">
                      <strong>{column.name}</strong>
                      {onEdit && (
                        <IconButton
                          label={`Edit column ${column.name}`}
                          icon={<Pencil />}
                          onClick={() => onEdit(column.name)}
                        />
                      )}
                    </span>
                  </td>
                  <td data-label="Type">
                    <TypeName type={column.type} />
                  </td>
                  <td class={column.nullable ? "dim" : ""} data-label="Empty cells">
                    {emptyCells(column.nullable)}
                  </td>
                  {hasStats && (
                    <>
                      <td data-label="Nulls">
                        {own && stats ? <Nulls nulls={own.nulls} rows={stats.rows} /> : nothing}
                      </td>
                      <td class="data-extreme" data-label="Min">
                        {own ? <Extreme value={own.min as Cell} column={own} format={column.format} /> : nothing}
                      </td>
                      <td class="data-extreme" data-label="Max">
                        {own ? <Extreme value={own.max as Cell} column={own} format={column.format} /> : nothing}
                      </td>
                    </>
                  )}
                  <td class="num" data-label="Distinct">
                    {summary ? `${summary.exact ? "" : "≈ "}${count(summary.distinct)}` : nothing}
                  </td>
                  <td class="whole">
                    {summary ? <Distribution summary={summary} isPercent={column.format !== undefined} /> : nothing}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {onEdit && (
        <div class="row">
          <Button variant="quiet" icon={<Plus />} onClick={() => setIsAdding(true)}>
            Add column from file names
          </Button>
        </div>
      )}
      {isAdding && <AddPathColumn slug={slug} table={table.name} onClose={() => setIsAdding(false)} onRun={onRun} />}
    </div>
  );
}
