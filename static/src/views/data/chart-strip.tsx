import { useQuery } from "@tanstack/preact-query";
import { X } from "lucide-preact";
import { useMemo } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../api/client";
import { asFailure } from "../../api/failure";
import { keys, rowsQuery } from "../../api/queries";
import type { Row, Table } from "../../api/types";
import { IconButton } from "../../components/button";
import { Chart, guessChart } from "../../components/chart";
import { Skeleton } from "../../components/states";
import { routes, RUN_AT_ONCE } from "../../browser/routes";
import { MakeDashboard } from "./make-dashboard";
import { extremesOf, suggest, timeColumn } from "./suggest";

const HEIGHT = 220;
const UNFILTERED = { sort: "", filters: [] };

const one = (pipeline: string, sql: string, signal: AbortSignal) =>
  ask(api.POST("/api/p/{pipeline}/query", { params: { path: { pipeline } }, body: { sql }, signal }));

/** Suggested chart above the rows of a table. */
export function ChartStrip({ slug, table, onClose }: { slug: string; table: Table; onClose: () => void }) {
  const first = useQuery(rowsQuery(slug, table.name, UNFILTERED));
  const rows = first.data?.rows as Row[] | undefined;
  const time = timeColumn(table.schema);
  const span = useQuery({
    queryKey: [...keys.table(slug, table.name), "span", time?.name],
    queryFn: ({ signal }) => one(slug, time ? extremesOf(table.name, time) : "", signal),
    enabled: time !== undefined,
    staleTime: 30_000,
  });
  const extremes = span.data?.rows[0] as Row | undefined;
  const ready = rows !== undefined && (!time || !span.isPending);
  const suggestion = useMemo(
    () => (ready ? suggest(table.name, table.schema, rows, extremes) : undefined),
    [ready, rows, table, extremes],
  );
  const sql = suggestion?.sql;
  const asked = useQuery({
    queryKey: [...keys.table(slug, table.name), "chart", sql],
    queryFn: ({ signal }) => one(slug, sql ?? "", signal),
    enabled: sql !== undefined,
    staleTime: 30_000,
  });
  const columns = sql ? asked.data?.columns : ready ? first.data?.columns : undefined;
  const points = sql ? (asked.data?.rows as Row[] | undefined) : rows;
  const spec = columns && points && guessChart(columns, points);
  const error = first.error ?? asked.error;
  return (
    <section class="data-chart" aria-label="Suggested chart">
      <header class="row">
        <h2 class="grow cut">{suggestion?.title ?? table.name}</h2>
        {sql && (
          <Link href={`~${routes.query(slug, { sql })}`} state={RUN_AT_ONCE}>
            Open as query
          </Link>
        )}
        <MakeDashboard slug={slug} table={table}>
          Create dashboard
        </MakeDashboard>
        <IconButton label="Close chart" icon={<X />} onClick={onClose} />
      </header>
      <div class="data-chart-box">
        {error ? (
          <p class="secondary">Couldn't load the chart: {asFailure(error).message}</p>
        ) : !columns || !points ? (
          <Skeleton lines={7} label="Chart" />
        ) : spec ? (
          <Chart label={suggestion?.title ?? table.name} spec={spec} columns={columns} rows={points} height={HEIGHT} />
        ) : (
          <p class="secondary">No suggested chart for these columns. Use a query to chart a result.</p>
        )}
      </div>
    </section>
  );
}
