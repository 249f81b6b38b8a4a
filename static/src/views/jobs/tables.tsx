import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { RunResult, SourceResult, TableResult } from "../../api/types";
import { Button } from "../../components/button";
import { Note } from "../../components/states";
import { Badge } from "../../components/status";
import { bytes, count, counted, signed } from "../../format/number";
import { routes } from "../../browser/routes";
import { balanceOf, sumOf } from "./accounting";
import { isChanged } from "../../runs/text";
import { rowsChange, type PartitionChange, type TableOutcome } from "../../runs/outcome";

const SOURCES_SHOWN = 12;
const PARTITIONS_SHOWN = 8;

/** The first items of a list, with a button for the rest. */
function useFirstItems<T>(all: T[], few: number) {
  const [whole, setWhole] = useState(false);
  const more = all.length - few;
  const button = more > 0 && (
    <Button variant="quiet" onClick={() => setWhole(!whole)}>
      {whole ? "Show fewer" : `Show ${count(more)} more`}
    </Button>
  );
  return { shown: whole ? all : all.slice(0, few), button };
}

function Sources({ slug, table, sources }: { slug: string; table: string; sources: SourceResult[] }) {
  const { shown, button } = useFirstItems(sources, SOURCES_SHOWN);
  const sum = sumOf(sources);
  return (
    <>
      <div class="table-box">
        <table class="table" aria-label={`Rows of each file read for ${table}`}>
          <thead>
            <tr>
              <th>File</th>
              <th class="num">Rows</th>
              <th class="num">Loaded</th>
              <th class="num">Rejected</th>
              <th class="num">Filtered out</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((source) => {
              const balance = balanceOf(source);
              return (
                <tr key={source.source} class={balance.missing === 0 ? "" : "job-broken"}>
                  <td>
                    <Link href={`~${routes.source(slug, source.source)}`}>{source.source}</Link>
                    {balance.missing !== 0 && <span class="jobs-bad"> {signed(-balance.missing)} rows</span>}
                    {source.note && <span class="secondary"> {source.note}</span>}
                  </td>
                  <td class="num">{count(balance.read)}</td>
                  <td class="num">{count(balance.written)}</td>
                  <td class="num">
                    {balance.rejected > 0 ? (
                      <Link href={`~${routes.data(slug, table, { tab: "rejected", source: source.source })}`}>
                        {count(balance.rejected)}
                      </Link>
                    ) : (
                      0
                    )}
                  </td>
                  <td class="num">{count(balance.filtered)}</td>
                </tr>
              );
            })}
          </tbody>
          {sources.length > 1 && (
            <tfoot>
              <tr>
                <th scope="row">All {counted(sources.length, "file")}</th>
                <td class="num">{count(sum.read)}</td>
                <td class="num">{count(sum.written)}</td>
                <td class="num">{count(sum.rejected)}</td>
                <td class="num">{count(sum.filtered)}</td>
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      {button}
      {sum.missing > 0 && (
        <Note tone="bad">
          Row counts don't add up: {counted(sum.missing, "row")} read {sum.missing === 1 ? "was" : "were"} neither
          written, rejected nor filtered. This is a bug in Lakemill: please report it with the job ID.
        </Note>
      )}
    </>
  );
}

/** Row counts of changed partitions. */
function Partitions({ changes, total }: { changes: PartitionChange[]; total: number }) {
  const { shown, button } = useFirstItems(changes, PARTITIONS_SHOWN);
  return (
    <>
      <div class="table-box">
        <table class="table" aria-label="Changed partitions">
          <thead>
            <tr>
              <th>Partition</th>
              <th class="num">Rows before</th>
              <th class="num">Rows after</th>
              <th class="num">Change</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one) => (
              <tr key={one.partition}>
                <td>
                  <code>{one.partition}</code>
                </td>
                <td class="num">{one.rows_before === null ? <span class="dim">new</span> : count(one.rows_before)}</td>
                <td class="num">
                  {one.rows_after === null ? <span class="dim">deleted</span> : count(one.rows_after)}
                </td>
                <td class="num">{signed((one.rows_after ?? 0) - (one.rows_before ?? 0))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {button}
      {total > changes.length && <p class="dim">{count(total - changes.length)} more changed partitions.</p>}
    </>
  );
}

const archived = (sources = 0): string => (sources > 0 ? `, ${counted(sources, "source")} archived` : "");

function facts(result: TableResult): string[] {
  const partitions: [number, string][] = [
    [result.partitions_written, "written"],
    [result.partitions_unchanged, "unchanged"],
    [result.partitions_deleted, "deleted"],
  ];
  const counts = partitions.filter(([n]) => n > 0).map(([n, what]) => `${count(n)} ${what}`);
  // A table without partitions is one.
  const isCut = partitions.reduce((sum, [n]) => sum + n, 0) > 1;
  return [
    `${counted(result.sources_read, "file")} read, ${count(result.sources_skipped)} unchanged${archived(result.sources_archived)}`,
    ...(isCut ? [`partitions: ${counts.join(", ")}`] : []),
    `${counted(result.files, "Parquet file")}, ${bytes(result.bytes)}`,
  ];
}

function TableCard({ slug, name, result }: { slug: string; name: string; result: TableOutcome }) {
  const change = rowsChange(result);
  const warnings = Object.entries(result.warnings ?? {});
  return (
    <section class="job-table" aria-label={`Table ${name}`}>
      <header class="row wrap">
        <h4 class="grow">
          <Link href={`~${routes.data(slug, name)}`}>{name}</Link>
        </h4>
        <span class="num">
          {counted(result.rows_written, "row")}
          {change !== undefined && <span class="dim"> ({signed(change)})</span>}
        </span>
        {result.rows_rejected > 0 && (
          <Link href={`~${routes.data(slug, name, { tab: "rejected" })}`}>
            <Badge tone="warn">{count(result.rows_rejected)} rejected in total</Badge>
          </Link>
        )}
      </header>
      <p class="secondary">{facts(result).join(" · ")}</p>
      {warnings.map(([check, rows]) => (
        <Note key={check} tone="warn">
          Check <code>{check}</code> failed for {counted(rows, "row")}.
        </Note>
      ))}
      {result.sources.length > 0 && <Sources slug={slug} table={name} sources={result.sources} />}
      {result.changes?.partitions.some(({ partition }) => partition !== "") && (
        <Partitions changes={result.changes.partitions} total={result.changes.partitions_total} />
      )}
    </section>
  );
}

/** Results of a completed run by table; unchanged tables in one line. */
export function TableResults({ slug, result, clean }: { slug: string; result: RunResult; clean: boolean }) {
  const tables = Object.entries(result.tables) as [string, TableOutcome][];
  const touched = tables.filter(([, table]) => table.sources_read > 0 || isChanged(table));
  const quiet = tables.filter((table) => !touched.includes(table));
  return (
    <section class="section" aria-label="Tables">
      <h3>Tables</h3>
      {touched.map(([name, table]) => (
        <TableCard key={name} slug={slug} name={name} result={table} />
      ))}
      {quiet.length > 0 && (
        <p class="secondary">
          Unchanged:{" "}
          {quiet.map(([name, table], at) => (
            <span key={name}>
              {at > 0 && ", "}
              <Link href={`~${routes.data(slug, name)}`}>{name}</Link> ({counted(table.rows_written, "row")})
            </span>
          ))}
        </p>
      )}
      {tables.length === 0 && <p class="secondary">The config defines no tables.</p>}
      {clean && result.dropped && result.dropped.length > 0 && (
        <Note>Deleted, no longer in the config: {result.dropped.join(", ")}</Note>
      )}
    </section>
  );
}
