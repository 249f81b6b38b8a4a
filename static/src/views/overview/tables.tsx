import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { statusQuery } from "../../api/queries";
import type { Table } from "../../api/types";
import { Section } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { bytes, count } from "../../format/number";
import { routes } from "../../browser/routes";
import { ExtraColumnsNotice, TableBadge } from "../../shell/state-notice";

const number = (n: number | null | undefined) => (typeof n === "number" ? count(n) : <span class="dim">–</span>);

/** Tables with their sizes. */
export function Tables({
  slug,
  tables,
  expected,
  error,
  onRetry,
}: {
  slug: string;
  tables: Table[] | undefined;
  /** Number of tables in the config, for which space is reserved while they load. */
  expected: number;
  error: unknown;
  onRetry: () => void;
}) {
  const own = tables?.filter(({ system }) => !system);
  const { data: status } = useQuery(statusQuery(slug));
  const csvs = (table: string) => status?.tables.find(({ name }) => name === table)?.sources;
  return (
    <Section title="Tables" actions={<Link href={`~${routes.query(slug)}`}>Query tables</Link>}>
      {!own &&
        (error ? (
          <Failed title="Couldn't load the tables" error={error} onRetry={onRetry} />
        ) : (
          <Skeleton lines={expected + 1} label="Loading the tables" />
        ))}
      {own && own.length === 0 && <p class="secondary">No tables have been published yet.</p>}
      {own && own.length > 0 && (
        <div class="table-box">
          <table class="table stacks" aria-label="Tables">
            <thead>
              <tr>
                <th>Table</th>
                <th class="num">Rows</th>
                <th class="num">Columns</th>
                <th class="num">Size</th>
                <th class="num">CSVs</th>
                <th class="num">Parquet files</th>
              </tr>
            </thead>
            <tbody>
              {own.map((table) => (
                <tr key={table.name}>
                  <td>
                    <span class="row">
                      <Link href={`~${routes.data(slug, table.name)}`}>{table.name}</Link>
                      <TableBadge slug={slug} table={table.name} />
                    </span>
                  </td>
                  <td class="num" data-label="Rows">
                    {number(table.rows)}
                  </td>
                  <td class="num" data-label="Columns">
                    {number(table.schema.length)}
                  </td>
                  <td class="num" data-label="Size">
                    {typeof table.bytes === "number" ? bytes(table.bytes) : <span class="dim">–</span>}
                  </td>
                  <td class="num" data-label="CSVs">
                    {number(csvs(table.name))}
                  </td>
                  <td class="num" data-label="Parquet files">
                    {number(table.file_count)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {own?.map((table) => (
        <ExtraColumnsNotice key={table.name} slug={slug} table={table} />
      ))}
    </Section>
  );
}
