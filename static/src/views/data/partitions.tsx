import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { lineageQuery } from "../../api/queries";
import type { Table, TableFile } from "../../api/types";
import { Button } from "../../components/button";
import { Empty, Failed, Note, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { bytes, count } from "../../format/number";
import { routes } from "../../browser/routes";
import type { Address } from "./url-state";
import { partitionText } from "./lineage";
import { Pager } from "./pager";

export const LINEAGE_PAGE = 100;

/** Files of a table by partition, with their sources. */
export function Partitions({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { page, source, set } = address;
  const narrow = source ? { source } : {};
  // Files of rejected rows come first, so pages start from the end: the newest partitions come first.
  const known = useQuery(lineageQuery(slug, table.name, { limit: LINEAGE_PAGE, offset: 0, ...narrow }));
  const total = known.data?.files_total ?? 0;
  const end = Math.max(0, total - page * LINEAGE_PAGE);
  const offset = Math.max(0, end - LINEAGE_PAGE);
  const shown = useQuery({
    ...lineageQuery(slug, table.name, { limit: Math.max(1, Math.min(LINEAGE_PAGE, end)), offset, ...narrow }),
    placeholderData: keepPreviousData,
    enabled: known.data !== undefined && offset > 0,
  });
  const data = offset > 0 ? shown.data : known.data;
  const error = known.error ?? shown.error;
  const refetch = () => Promise.all([known.refetch(), offset > 0 ? shown.refetch() : undefined]);
  const all = <Button onClick={() => set({ source: undefined, page: 0 })}>Show all partitions</Button>;
  if (error && !data)
    return (
      <Failed
        title="Couldn't load the partitions"
        error={error}
        onRetry={() => void refetch()}
        actions={source && all}
      />
    );
  if (!data) return <Skeleton lines={10} />;
  const files = data.files.slice(0, offset > 0 ? LINEAGE_PAGE : end).reverse();
  if (total === 0)
    return (
      <Empty title="No partitions yet" actions={source && all}>
        Partitions are written by the first run that reads a source of this table.
      </Empty>
    );
  return (
    <div class="data-page" aria-busy={shown.isPlaceholderData}>
      {source && (
        <Note>
          <span class="row wrap">
            <span>
              Partitions with rows from <code>{source}</code>
            </span>
            {all}
          </span>
        </Note>
      )}
      <div class="table-box" tabIndex={0} role="group" aria-label={`Partitions of ${table.name}`}>
        <table class="table stacks data-lineage">
          <thead>
            <tr>
              <th>Partition</th>
              <th class="num">Rows</th>
              <th class="num">Size</th>
              <th>Sources</th>
              <th>Written by</th>
            </tr>
          </thead>
          <tbody>
            {files.map((file) => (
              <tr key={file.key}>
                <td>
                  <span class="mono data-partition" title={file.key}>
                    {partitionText(file.partition) || file.key.slice(file.key.lastIndexOf("/") + 1)}
                  </span>{" "}
                  {file.rejects && <Badge title="Rejected rows of this source">rejected rows</Badge>}
                </td>
                <td class="num" data-label="Rows">
                  {count(file.rows)}
                </td>
                <td class="num" data-label="Size">
                  {bytes(file.size)}
                </td>
                <td>
                  <Sources slug={slug} file={file} />
                </td>
                <td class="mono" data-label="By">
                  {file.job_id ? (
                    <Link href={`~${routes.job(slug, file.job_id)}`} title={file.job_id}>
                      {file.job_id.slice(0, 13)}
                    </Link>
                  ) : (
                    <span class="dim">–</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager page={page} size={LINEAGE_PAGE} total={total} what="files" onPage={(to) => set({ page: to })} />
    </div>
  );
}

/** A single source by name, several as a list. */
function Sources({ slug, file }: { slug: string; file: TableFile }) {
  const [first] = file.sources;
  if (first === undefined) return <span class="dim">none</span>;
  const link = (source: string) => <Link href={`~${routes.source(slug, source)}`}>{source}</Link>;
  if (file.sources_total === 1) return link(first);
  return (
    <details>
      <summary>{count(file.sources_total)} sources</summary>
      <ul class="data-sources">
        {file.sources.map((source) => (
          <li key={source}>{link(source)}</li>
        ))}
      </ul>
      {file.sources_total > file.sources.length && (
        <p class="dim">and {count(file.sources_total - file.sources.length)} more</p>
      )}
    </details>
  );
}
