import { useQuery } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import { ran } from "../../api/sql";
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
import { reasonWords, rejectWords } from "../../format/reject";
import { literal } from "../../format/sql";
import { REJECTED, rejectedTexts } from "./rejected-filters";

/** Columns that describe the rejection, in display order. */
const SHOWN = ["source", "line", "reason", "column", "value", "message", "raw"];
/** Where there is little room, the cause comes first. */
const SHOWN_NARROW = ["reason", "column", "value", "line", "source", "message", "raw"];
const NARROW = window.matchMedia("(max-width: 760px)");
const REASONS_MAX = 50;

const text = (value: Cell | undefined): string => (typeof value === "string" ? value : "");

/** A field of a rejected row, as people read it. */
function inWords(name: string, row: Row, names: readonly string[]): Cell {
  const of = (field: string): Cell => row[names.indexOf(field)] ?? null;
  if (name === "reason") return reasonWords(text(of(name)));
  if (name !== "message") return of(name);
  const value = of("value");
  const words = rejectWords({
    reason: text(of("reason")),
    value: value === null ? null : text(value),
    message: text(of(name)),
  });
  // Cells have no code.
  return words.replaceAll("`", '"');
}

function useReasons(slug: string, table: string, source: string | undefined) {
  const where = `"table" = ${literal(table)}${source ? ` AND source = ${literal(source)}` : ""}`;
  const sql =
    `SELECT reason, "column", count(*) AS n FROM ${REJECTED} WHERE ${where} ` +
    `GROUP BY ALL ORDER BY n DESC, reason, "column" LIMIT ${REASONS_MAX}`;
  return useQuery({
    queryKey: [...keys.table(slug, table), "reasons", source ?? ""],
    queryFn: ({ signal }) => ran(slug, sql, signal),
  });
}

/** Rejected rows of a table, with reasons. */
export function Rejected({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { source, reason, column, set } = address;
  const filters = rejectedTexts(table.name, address);
  const { first, rows, refused } = useTableRows(slug, REJECTED, "source,line", filters);
  const reasons = useReasons(slug, table.name, source);
  const [open, setOpen] = useState<number>();
  const [order] = useState(NARROW.matches ? SHOWN_NARROW : SHOWN);
  const names = useMemo(() => first.data?.columns.map(({ name }) => name) ?? [], [first.data]);
  const picked = useSelectedColumns(rows, names, order);
  const columns = useColumns(slug, order);
  const all = (
    <Button onClick={() => set({ source: undefined, reason: undefined, column: undefined })}>
      Show all rejected rows
    </Button>
  );

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
        {(reasons.data?.rows as Row[] | undefined)?.map(([why, of, number]) => {
          // Links name a reason only: it covers all columns.
          const isPressed = reason === text(why) && (column === undefined || column === text(of));
          const chosen = { reason: text(why), column: text(of) || undefined };
          return (
            <Button
              key={`${text(why)} ${text(of)}`}
              aria-pressed={isPressed}
              onClick={() => set(isPressed ? { reason: undefined, column: undefined } : chosen)}
            >
              {reasonWords(text(why))}
              {of !== null && <code>{text(of)}</code>}
              <span class="num">{count(Number(number))}</span>
            </Button>
          );
        })}
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
            {order.map((name) => {
              const value = inWords(name, openRow, names);
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
function useSelectedColumns(rows: RowSource, names: string[], order: readonly string[]): RowSource {
  const picked = useMemo(() => new WeakMap<Row, Row>(), []);
  return useMemo(
    () => ({
      ...rows,
      get: (index) => {
        const row = rows.get(index);
        if (!row) return undefined;
        const known = picked.get(row) ?? order.map((name) => inWords(name, row, names));
        picked.set(row, known);
        return known;
      },
    }),
    [rows, names, order, picked],
  );
}

function useColumns(slug: string, order: readonly string[]): GridColumn[] {
  return useMemo(() => {
    const link = (_: Cell, row: Row) => {
      const [source, line] = [row[order.indexOf("source")], row[order.indexOf("line")]];
      if (typeof source !== "string") return undefined;
      return `~${routes.source(slug, source, typeof line === "number" ? line : null)}`;
    };
    return order.map((name) => ({
      name,
      type: name === "line" ? "uint64" : "string",
      ...(name === "source" || name === "line" ? { link } : {}),
    }));
  }, [slug, order]);
}
