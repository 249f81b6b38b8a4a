import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { useCallback, useMemo, useRef } from "preact/hooks";
import { asFailure } from "../../api/failure";
import { rowsPage, rowsQuery, ROWS_PAGE, type RowsWanted } from "../../api/queries";
import type { Row, Table } from "../../api/types";
import { Button } from "../../components/button";
import { Grid, usePages, type FetchPage, type GridColumn } from "../../components/grid";
import { Empty, Failed, Skeleton } from "../../components/states";
import { sentence } from "../../format/text";
import { count, counted } from "../../format/number";
import type { Address } from "./url-state";
import { useUnits, withUnits } from "../../tables/units";
import { refusalOf, type Filter, type Refusal } from "../../format/filter";
import { FilterField } from "./filter-field";
import { RowDrawer } from "./row-drawer";

const NONE: Row[] = [];

/** State of the first page's query. */
interface First {
  error: Error | null;
  data: unknown;
  isPending: boolean;
  isPlaceholderData: boolean;
}

/** All rows of a page; the service may cut responses by size. */
export async function wholePage(
  slug: string,
  table: string,
  wanted: RowsWanted,
  page: { first: number; count: number; signal: AbortSignal },
): Promise<Row[]> {
  const rows: Row[] = [];
  while (rows.length < page.count) {
    const limit = page.count - rows.length;
    const answer = await rowsPage(slug, table, wanted, {
      limit,
      offset: page.first + rows.length,
      signal: page.signal,
    });
    rows.push(...(answer.rows as Row[]));
    if (!answer.truncated || answer.rows.length === 0) break;
  }
  return rows;
}

/** Rows of a table by the sort and filters in the URL. */
export function useTableRows(slug: string, table: string, sort: string, filterTexts: string[], asOf = "") {
  const filterKey = JSON.stringify(filterTexts);
  const wanted = useMemo(
    () => ({ sort, filters: JSON.parse(filterKey) as string[], ...(asOf ? { asOf } : {}) }),
    [sort, filterKey, asOf],
  );
  const first = useQuery({ ...rowsQuery(slug, table, wanted), placeholderData: keepPreviousData });
  const { data, isPlaceholderData } = first;
  const fetchPage = useCallback<FetchPage>(
    (from, number, signal) => wholePage(slug, table, wanted, { first: from, count: number, signal }),
    [slug, table, wanted],
  );
  const rows = usePages(
    data?.total ?? 0,
    ROWS_PAGE,
    isPlaceholderData ? never : fetchPage,
    data ? (data.rows as Row[]) : NONE,
  );
  const refused = useRefused(first, `${slug} ${table} ${sort} ${filterKey} ${asOf}`);
  return { first, rows, stale: isPlaceholderData, refused };
}

/**
 * The error of the request for these rows. Kept while the request is repeated: meanwhile the query has the rows of
 * another request.
 */
function useRefused({ error, data, isPending, isPlaceholderData }: First, asked: string): Error | undefined {
  const last = useRef<{ asked: string; error: Error } | undefined>(undefined);
  const waits = isPending || isPlaceholderData;
  if (error && !data) last.current = { asked, error };
  else if (!waits) last.current = undefined;
  if (last.current?.asked !== asked) return undefined;
  return waits && asFailure(last.current.error).passing ? undefined : last.current.error;
}

/** Old rows stay visible until new ones arrive; no more of them are loaded. */
const never: FetchPage = () => new Promise(() => undefined);

/** The field shows it too, but its column may be out of view. */
function Refused({ column, why, onClear }: Refusal & { onClear: () => void }) {
  return (
    <Empty title={`Invalid filter on ${column}`} actions={<Button onClick={onClear}>Clear filter</Button>}>
      {sentence(why)}
    </Empty>
  );
}

export function Rows({
  slug,
  table,
  address,
  onEdit,
}: {
  slug: string;
  table: Table;
  address: Address;
  /** Undefined: the columns aren't those of a config. */
  onEdit: ((column: string) => void) | undefined;
}) {
  const { sort, filters, filterTexts, sortText, row, asOf, set } = address;
  const { first, rows, stale, refused } = useTableRows(slug, table.name, sortText, filterTexts, asOf);
  // Schema of the rows: a run may have published since the tables were listed.
  const known = first.data?.columns ?? table.schema;
  const units = useUnits(slug, table.name);
  const columns: GridColumn[] = useMemo(() => withUnits(known, units), [known, units]);
  const narrowed = filterTexts.length > 0;
  const clear = <Button onClick={() => set({ filters: [] }, { replace: true })}>Clear filters</Button>;
  const names = columns.map(({ name }) => name);
  const refusal = refused && refusalOf(asFailure(refused).message, names);
  const filter = (column: string, own: Filter[]) =>
    set({ filters: [...filters.filter((one) => one.column !== column), ...own] }, { replace: true });
  if (first.isPending && !narrowed) return <Skeleton lines={16} label="Rows" />;
  return (
    <div class="data-rows">
      <div class="data-grid" aria-busy={stale || first.isPending}>
        <Grid
          label={`Rows of ${table.name}`}
          name={`${slug}.${table.name}`}
          columns={columns}
          rows={refused ? { total: 0, get: () => undefined } : rows}
          sort={sort}
          onSort={(next) => set({ sort: next }, { replace: true })}
          chosen={JSON.stringify(filterTexts)}
          head={(column) => (
            <FilterField
              column={column}
              filters={filters.filter((one) => one.column === column.name)}
              unit={units.get(column.name)}
              refused={refusal?.column === column.name ? refusal.why : undefined}
              onChange={(own) => filter(column.name, own)}
            />
          )}
          columnItems={(column) => (onEdit ? [{ label: "Edit column…", onSelect: () => onEdit(column) }] : [])}
          onOpen={(index) => set({ row: index })}
          shown={row}
          empty={
            refusal ? (
              <Refused {...refusal} onClear={() => filter(refusal.column, [])} />
            ) : refused ? (
              <Failed
                title="Couldn't load the rows"
                error={refused}
                onRetry={() => void first.refetch()}
                actions={
                  asOf !== undefined ? (
                    <Button onClick={() => set({ asOf: undefined }, { replace: true })}>Show current version</Button>
                  ) : (
                    (narrowed || sortText) && (
                      <Button onClick={() => set({ filters: [], sort: [] }, { replace: true })}>
                        Clear filters and sort
                      </Button>
                    )
                  )
                }
              />
            ) : first.isPending ? (
              <Skeleton lines={8} label="Rows" />
            ) : narrowed ? (
              <Empty title="No rows match these filters" actions={clear}>
                The table has {counted(table.rows, "row")}.
              </Empty>
            ) : undefined
          }
        />
      </div>
      <footer class="data-foot" role="status">
        {first.data && !refused && (
          <span>
            {narrowed && asOf === undefined
              ? `${count(first.data.total)} of ${counted(table.rows, "row")}`
              : counted(first.data.total, "row")}
          </span>
        )}
        {narrowed && !refused && clear}
      </footer>
      {row !== undefined && first.data && !refused && row < first.data.total && (
        <RowDrawer
          slug={slug}
          table={table}
          units={units}
          rows={rows}
          index={row}
          onMove={(to) => set({ row: to }, { replace: true })}
          onClose={() => set({ row: undefined }, { replace: true })}
        />
      )}
    </div>
  );
}
