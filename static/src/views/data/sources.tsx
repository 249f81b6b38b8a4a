import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { lineageQuery } from "../../api/queries";
import type { LineageSource, Table } from "../../api/types";
import { Button } from "../../components/button";
import { Badge } from "../../components/status";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Time } from "../../components/time";
import { bytes, count, counted } from "../../format/number";
import { pendingFiles } from "../../runs/table-state";
import { useKnownStatus } from "../../shell/state-notice";
import { routes } from "../../browser/routes";
import { nameOf } from "../../uploads/keys";
import { DeleteDialog } from "../../uploads/delete-dialog";
import type { Entry, Selected } from "../../uploads/entries";
import type { Address } from "./url-state";
import { Pager } from "./pager";
import { LeftOutRow, useLeftOut } from "./left-out";
import { LINEAGE_PAGE } from "./partitions";
import { UnreadRow } from "./unread-row";

/** Row counts by source: rows = loaded + rejected + filtered out. */
export function Sources({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { page, asOf, set } = address;
  const [chosen, setChosen] = useState<ReadonlyMap<string, Selected>>(new Map());
  const [deleting, setDeleting] = useState(false);
  const status = useKnownStatus(slug);
  const own = asOf || page > 0 ? undefined : status?.tables.find(({ name }) => name === table.name);
  const leftOut = useLeftOut(slug, own);
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
  const pending = own && status ? pendingFiles(own, status) : [];
  if (data.sources_total === 0 && pending.length === 0 && leftOut.length === 0)
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
  // Files of earlier versions may be gone.
  const read = asOf ? [] : data.sources.filter(({ archived }) => !archived).map((source) => entryOf(slug, source));
  const unread = [...pending.map(({ key }) => key), ...leftOut];
  const deletable = [...unread.map((key) => unreadOf(slug, key)), ...read];
  const choose = (entries: readonly Selected[], on: boolean) => {
    const next = new Map(chosen);
    for (const entry of entries)
      if (on) next.set(entry.key, entry);
      else next.delete(entry.key);
    setChosen(next);
  };
  const meant = [...chosen.values()];
  // A table without partitions has one, without a name.
  const isCut = data.sources.some(({ partitions }) => Object.keys(partitions).some((path) => path !== ""));
  const columns = isCut ? 7 : 6;
  return (
    <div class="data-page" aria-busy={isPlaceholderData}>
      {deletable.length > 0 && (
        <div class="row wrap data-sources-bar">
          <span class="secondary grow" role="status">
            {meant.length > 0
              ? `${counted(meant.length, "file")} selected`
              : "Select files to delete them from the lake, such as those that a corrected file replaces."}
          </span>
          <Button icon={<Trash2 />} disabled={meant.length === 0} onClick={() => setDeleting(true)}>
            Delete…
          </Button>
        </div>
      )}
      {deleting && (
        <DeleteDialog
          entries={meant}
          onClose={() => {
            setDeleting(false);
            setChosen(new Map());
          }}
        />
      )}
      <div class="table-box" tabIndex={0} role="group" aria-label={`Sources of ${table.name}`}>
        <table class="table stacks data-lineage">
          <thead>
            <tr>
              <th>
                <span class="row">
                  {!asOf && (
                    <input
                      type="checkbox"
                      aria-label="Select all sources of this page"
                      disabled={deletable.length === 0}
                      checked={deletable.length > 0 && deletable.every(({ key }) => chosen.has(key))}
                      onChange={(event) => choose(deletable, event.currentTarget.checked)}
                    />
                  )}
                  Source
                </span>
              </th>
              <th class="num">Rows</th>
              <th class="num">Loaded</th>
              <th class="num">Rejected</th>
              <th class="num">Filtered out</th>
              <th class="num">Size</th>
              {isCut && <th class="num">Partitions</th>}
              <th>Read at</th>
            </tr>
          </thead>
          <tbody>
            {pending.map((file) => (
              <UnreadRow
                key={`pending ${file.key}`}
                slug={slug}
                file={file.key}
                columns={columns}
                tone={PENDING[file.state].tone}
                label={PENDING[file.state].label}
                chosen={chosen.has(unreadOf(slug, file.key).key)}
                onChoose={(on) => choose([unreadOf(slug, file.key)], on)}
              >
                {PENDING[file.state].words}
              </UnreadRow>
            ))}
            {own && own.pending.count > pending.length && (
              <tr>
                <td colSpan={columns + 1} class="dim">
                  and {counted(own.pending.count - pending.length, "more file", "more files")} not loaded
                </td>
              </tr>
            )}
            {leftOut.map((file) => (
              <LeftOutRow
                key={`left out ${file}`}
                slug={slug}
                table={table.name}
                file={file}
                columns={columns}
                chosen={chosen.has(unreadOf(slug, file).key)}
                onChoose={(on) => choose([unreadOf(slug, file)], on)}
              />
            ))}
            {data.sources.map((source) => (
              <SourceRow
                key={source.key}
                slug={slug}
                table={table.name}
                source={source}
                isCut={isCut}
                chosen={asOf ? undefined : chosen.has(entryOf(slug, source).key)}
                onChoose={(on) => choose([entryOf(slug, source)], on)}
              />
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

/** A source as the lake lists it. */
const entryOf = (slug: string, { key, size, etag, read_at }: LineageSource): Entry => {
  const file = { key: `pipelines/${slug}/${key}`, size, etag, modified: read_at };
  return { kind: "file", key: file.key, name: nameOf(key), file };
};

/** A file of the lake that the table hasn't read. */
const unreadOf = (slug: string, key: string): Selected => ({
  kind: "key",
  key: `pipelines/${slug}/${key}`,
  name: nameOf(key),
});

const PENDING = {
  failed: { tone: "bad", label: "failed", words: "Not loaded: the last run failed." },
  loading: { tone: "run", label: "loading", words: "A run is in progress." },
  waiting: { tone: "warn", label: "not loaded", words: "New or changed: waits for the next run." },
} as const;

function SourceRow({
  slug,
  table,
  source,
  isCut,
  chosen,
  onChoose,
}: {
  slug: string;
  table: string;
  source: LineageSource;
  /** Whether the table has partitions. */
  isCut: boolean;
  /** Undefined: it can't be chosen. */
  chosen: boolean | undefined;
  onChoose: (on: boolean) => void;
}) {
  const rejected = source.rows_rejected;
  return (
    <tr>
      <td>
        <span class="row">
          {chosen !== undefined && (
            <input
              type="checkbox"
              aria-label={`Select ${source.key}`}
              disabled={source.archived}
              checked={chosen}
              onChange={(event) => onChoose(event.currentTarget.checked)}
            />
          )}
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
        </span>
      </td>
      <td class="num" data-label="Rows">
        {count(source.rows_read)}
      </td>
      <td class="num" data-label="Loaded">
        {count(source.rows_written)}
      </td>
      <td class="num" data-label="Rejected">
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
      <td class="num" data-label="Filtered out">
        {count(source.rows_filtered)}
      </td>
      <td class="num" data-label="Size">
        {bytes(source.size)}
      </td>
      {isCut && (
        <td class="num" data-label="Partitions">
          <Link href={`~${routes.data(slug, table, { tab: "partitions", source: source.key })}`}>
            {count(source.partitions_total)}
          </Link>
        </td>
      )}
      <td class="whole" data-label="Read">
        <Time at={source.read_at} />
      </td>
    </tr>
  );
}
