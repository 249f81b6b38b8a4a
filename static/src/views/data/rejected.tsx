import { useQuery } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { keys } from "../../api/queries";
import type { Cell, Row, Table } from "../../api/types";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Grid, type GridColumn, type RowSource } from "../../components/grid";
import { Empty, Failed, Skeleton } from "../../components/states";
import { count, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import type { Address } from "./url-state";
import { RejectedFrom } from "./row-drawer";
import { useTableRows } from "./rows";
import { literal } from "../../format/sql";

export const REJECTED = "_rejected_rows";
/** Columns that describe the rejection, in display order. */
const SHOWN = ["source", "line", "reason", "column", "value", "message", "raw"];
const REASONS_MAX = 50;

const text = (value: Cell | undefined): string => (typeof value === "string" ? value : "");

function useReasons(slug: string, table: string, source: string | undefined) {
  const where = `"table" = ${literal(table)}${source ? ` AND source = ${literal(source)}` : ""}`;
  const sql =
    `SELECT reason, "column", count(*) AS n FROM ${REJECTED} WHERE ${where} ` +
    `GROUP BY ALL ORDER BY n DESC, reason, "column" LIMIT ${REASONS_MAX}`;
  return useQuery({
    queryKey: [...keys.table(slug, table), "reasons", source ?? ""],
    queryFn: ({ signal }) =>
      ask(api.POST("/api/p/{pipeline}/query", { params: { path: { pipeline: slug } }, body: { sql }, signal })),
  });
}

/** Rejected rows of a table, with reasons. */
export function Rejected({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { source, reason, set } = address;
  const filters = [
    `table:eq:${table.name}`,
    ...(source ? [`source:eq:${source}`] : []),
    ...(reason ? [`reason:eq:${reason}`] : []),
  ];
  const { first, rows, refused } = useTableRows(slug, REJECTED, "source,line", filters);
  const reasons = useReasons(slug, table.name, source);
  const [open, setOpen] = useState<number>();
  const names = useMemo(() => first.data?.columns.map(({ name }) => name) ?? [], [first.data]);
  const picked = useSelectedColumns(rows, names);
  const columns = useColumns(slug);
  const all = <Button onClick={() => set({ source: undefined, reason: undefined })}>Show all rejected rows</Button>;

  if (refused)
    return <Failed title="Couldn't load the rejected rows" error={refused} onRetry={() => void first.refetch()} />;
  if (!first.data) return <Skeleton lines={12} />;
  if (first.data.total === 0)
    return (
      <Empty
        title={source || reason ? "No rejected rows match" : "No rejected rows"}
        actions={(source || reason) && all}
      >
        {!source && !reason && "All rows of this table's sources were written or filtered."}
      </Empty>
    );
  const openRow = open === undefined ? undefined : rows.get(open);
  return (
    <div class="data-rows">
      <div class="data-reasons" role="group" aria-label="Reasons">
        {(reasons.data?.rows as Row[] | undefined)?.map(([why, column, number]) => (
          <Button
            key={`${text(why)} ${text(column)}`}
            aria-pressed={reason === text(why)}
            onClick={() => set({ reason: reason === text(why) ? undefined : text(why) })}
          >
            {text(why).replaceAll("_", " ")}
            {column !== null && <code>{text(column)}</code>}
            <span class="num">{count(Number(number))}</span>
          </Button>
        ))}
        {source && (
          <Button onClick={() => set({ source: undefined })} title="Show rejected rows of all sources">
            of <code class="cut">{source}</code> ×
          </Button>
        )}
      </div>
      <div class="data-grid">
        <Grid
          label={`Rejected rows of ${table.name}`}
          name={`${slug}.${REJECTED}`}
          columns={columns}
          rows={picked}
          chosen={filters.join("\n")}
          onOpen={setOpen}
        />
      </div>
      <footer class="data-foot" role="status">
        {counted(first.data.total, "rejected row")}
      </footer>
      {open !== undefined && openRow && (
        <Dialog title="Rejected row" kind="drawer" onClose={() => setOpen(undefined)}>
          <dl class="data-fields">
            {SHOWN.map((name) => {
              const value = openRow[names.indexOf(name)];
              return (
                <div key={name} class="data-field">
                  <dt>{name}</dt>
                  <dd>
                    <span class={`data-value ${value === null ? "null" : ""}`}>
                      {typeof value === "number" ? count(value) : value === null ? "null" : text(value)}
                    </span>
                  </dd>
                </div>
              );
            })}
          </dl>
          <RejectedFrom slug={slug} row={openRow} columns={first.data.columns.map((c) => ({ ...c, nullable: true }))} />
        </Dialog>
      )}
    </div>
  );
}

/** The same rows with selected columns. */
function useSelectedColumns(rows: RowSource, names: string[]): RowSource {
  const picked = useMemo(() => new WeakMap<Row, Row>(), []);
  return useMemo(
    () => ({
      ...rows,
      get: (index) => {
        const row = rows.get(index);
        if (!row) return undefined;
        const known = picked.get(row) ?? SHOWN.map((name) => row[names.indexOf(name)] ?? null);
        picked.set(row, known);
        return known;
      },
    }),
    [rows, names, picked],
  );
}

function useColumns(slug: string): GridColumn[] {
  return useMemo(() => {
    const link = (_: Cell, row: Row) => {
      const [source, line] = row;
      if (typeof source !== "string") return undefined;
      return `~${routes.source(slug, source, typeof line === "number" ? line : null)}`;
    };
    return SHOWN.map((name) => ({
      name,
      type: name === "line" ? "uint64" : "string",
      ...(name === "source" || name === "line" ? { link } : {}),
    }));
  }, [slug]);
}
