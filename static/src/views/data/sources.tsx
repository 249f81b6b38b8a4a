import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { lineageQuery } from "../../api/queries";
import type { LineageSource, Table } from "../../api/types";
import { Badge } from "../../components/status";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Time } from "../../components/time";
import { bytes, count } from "../../format/number";
import { routes } from "../../browser/routes";
import type { Address } from "./url-state";
import { Pager } from "./pager";
import { LINEAGE_PAGE } from "./partitions";

/** Row counts by source: read = written + rejected + filtered. */
export function Sources({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { page, asOf, set } = address;
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...lineageQuery(slug, table.name, {
      limit: LINEAGE_PAGE,
      offset: page * LINEAGE_PAGE,
      ...(asOf ? { as_of: asOf } : {}),
    }),
    placeholderData: keepPreviousData,
  });
  if (error && !data) return <Failed title="Couldn't load the sources" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton lines={10} />;
  if (data.sources_total === 0)
    return (
      <Empty
        title="No sources yet"
        actions={
          <Link class="button" href={`~${routes.lake(`pipelines/${slug}/`)}`}>
            Open lake
          </Link>
        }
      >
        Files that match the table's globs become its sources in the next run.
      </Empty>
    );
  return (
    <div class="data-page" aria-busy={isPlaceholderData}>
      <div class="table-box" tabIndex={0} role="group" aria-label={`Sources of ${table.name}`}>
        <table class="table stacks data-lineage">
          <thead>
            <tr>
              <th>Source</th>
              <th class="num">Read</th>
              <th class="num">= Written</th>
              <th class="num">+ Rejected</th>
              <th class="num">+ Filtered</th>
              <th class="num">Size</th>
              <th class="num">Partitions</th>
              <th>Read at</th>
            </tr>
          </thead>
          <tbody>
            {data.sources.map((source) => (
              <SourceRow key={source.key} slug={slug} table={table.name} source={source} />
            ))}
          </tbody>
        </table>
      </div>
      <Pager
        page={page}
        size={LINEAGE_PAGE}
        total={data.sources_total}
        what="sources"
        onPage={(to) => set({ page: to })}
      />
    </div>
  );
}

function SourceRow({ slug, table, source }: { slug: string; table: string; source: LineageSource }) {
  const rejected = source.rows_rejected;
  return (
    <tr>
      <td>
        {source.archived ? (
          <>
            {source.key}{" "}
            <Badge tone="neutral" title="The CSV was removed from the lake. The table keeps its rows.">
              archived
            </Badge>
          </>
        ) : (
          <Link href={`~${routes.source(slug, source.key)}`}>{source.key}</Link>
        )}
      </td>
      <td class="num" data-label="Read">
        {count(source.rows_read)}
      </td>
      <td class="num" data-label="= Written">
        {count(source.rows_written)}
      </td>
      <td class="num" data-label="+ Rejected">
        {rejected > 0 ? (
          <Link
            class="data-rejected-count"
            href={`~${routes.data(slug, table, { tab: "rejected", source: source.key })}`}
          >
            {count(rejected)}
          </Link>
        ) : (
          <span class="dim">0</span>
        )}
      </td>
      <td class="num" data-label="+ Filtered">
        {count(source.rows_filtered)}
      </td>
      <td class="num" data-label="Size">
        {bytes(source.size)}
      </td>
      <td class="num" data-label="Partitions">
        <Link href={`~${routes.data(slug, table, { tab: "partitions", source: source.key })}`}>
          {count(source.partitions_total)}
        </Link>
      </td>
      <td class="whole" data-label="Read">
        <Time at={source.read_at} />
      </td>
    </tr>
  );
}
