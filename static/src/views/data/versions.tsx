import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/preact-query";
import { ChevronDown, ChevronRight } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../api/client";
import { commitQuery, commitsQuery, keys, VERSIONS_PAGE } from "../../api/queries";
import type { Commit, CommitChanges, Table } from "../../api/types";
import { useWhenIdle } from "../../api/when-idle";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { Empty, Failed, Note, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { Time } from "../../components/time";
import { toast } from "../../components/toasts";
import { bytes, count, counted } from "../../format/number";
import { exact } from "../../format/time";
import { routes } from "../../browser/routes";
import type { Address } from "./url-state";
import { partitionText } from "./lineage";
import { KeepHistory } from "./keep-history";
import { Pager } from "./pager";

/** The versions of a table, with what each changed; an earlier one can be viewed or restored. */
export function Versions({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { page, set } = address;
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...commitsQuery(slug, table.name, page * VERSIONS_PAGE),
    placeholderData: keepPreviousData,
  });
  const [opened, setOpened] = useState<number>();
  const [restoring, setRestoring] = useState<Commit>();
  if (error && !data) return <Failed title="Couldn't load the versions" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton lines={10} />;
  const current = page === 0 ? data.commits[0]?.sequence : undefined;
  if (data.total === 0)
    return (
      <div class="data-page">
        <Empty title="No versions yet">The first run of this table publishes its first version.</Empty>
        <KeepHistory slug={slug} table={table.name} />
      </div>
    );
  const open = opened ?? current;
  return (
    <div class="data-page" aria-busy={isPlaceholderData}>
      <KeepHistory slug={slug} table={table.name} />
      <div class="table-box" tabIndex={0} role="group" aria-label={`Versions of ${table.name}`}>
        <table class="table stacks data-versions">
          <thead>
            <tr>
              <th class="num">Version</th>
              <th>Published</th>
              <th class="num">Rows</th>
              <th class="num">Sources</th>
              <th class="num">Size</th>
              <th>By</th>
              <th>
                <span class="for-readers">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.commits.map((commit) => (
              <VersionRow
                key={commit.sequence}
                slug={slug}
                table={table.name}
                commit={commit}
                isCurrent={commit.sequence === current}
                isOpen={commit.sequence === open}
                onOpen={() => setOpened(commit.sequence === open ? 0 : commit.sequence)}
                onView={() => set({ tab: "rows", asOf: String(commit.sequence) })}
                onRestore={() => setRestoring(commit)}
              />
            ))}
          </tbody>
        </table>
      </div>
      <Pager
        page={page}
        size={VERSIONS_PAGE}
        total={data.total}
        what="versions"
        onPage={(to) => {
          setOpened(0);
          set({ page: to });
        }}
      />
      {restoring && (
        <Restore slug={slug} table={table.name} commit={restoring} onClose={() => setRestoring(undefined)} />
      )}
    </div>
  );
}

function VersionRow({
  slug,
  table,
  commit,
  isCurrent,
  isOpen,
  onOpen,
  onView,
  onRestore,
}: {
  slug: string;
  table: string;
  commit: Commit;
  isCurrent: boolean;
  isOpen: boolean;
  onOpen: () => void;
  onView: () => void;
  onRestore: () => void;
}) {
  const { sequence, restored } = commit;
  return (
    <>
      <tr>
        <td class="num" data-label="Version">
          <Button
            variant="quiet"
            icon={isOpen ? <ChevronDown /> : <ChevronRight />}
            aria-expanded={isOpen}
            onClick={onOpen}
            title="Show what changed"
          >
            {count(sequence)}
          </Button>
        </td>
        <td class="whole">
          <Time at={commit.committed_at} /> {isCurrent && <Badge tone="accent">current</Badge>}
        </td>
        <td class="num" data-label="Rows">
          {count(commit.rows)}
        </td>
        <td class="num" data-label="Sources">
          {count(commit.sources)}
        </td>
        <td class="num" data-label="Size">
          {bytes(commit.bytes)}
        </td>
        <td>
          {restored ? (
            `Restored from version ${restored}`
          ) : (
            <Link class="mono" href={`~${routes.job(slug, commit.job_id)}`} title={commit.job_id}>
              run {commit.job_id.slice(-8)}
            </Link>
          )}
        </td>
        <td class="whole">
          {!isCurrent && (
            <span class="row">
              <Button onClick={onView}>View rows</Button>
              <Button onClick={onRestore}>Restore…</Button>
            </span>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={7}>
            <Changes slug={slug} table={table} sequence={sequence} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Summarizes a version's changes in one sentence. */
export function changesText(changes: NonNullable<CommitChanges["changes"]>): string {
  const { sources_changed, partitions_changed, files_added, files_removed } = changes;
  if (sources_changed === 0 && partitions_changed === 0) return "No rows changed.";
  const rows = files_added.rows - files_removed.rows;
  const net =
    rows === 0 ? "the same number of rows" : rows > 0 ? `+${counted(rows, "row")}` : `−${counted(-rows, "row")}`;
  const files = `${counted(files_added.files, "Parquet file")} added, ${count(files_removed.files)} removed`;
  return `${counted(sources_changed, "source")} in ${counted(partitions_changed, "partition")}: ${net}. ${files}.`;
}

/** Says why the changes of a version aren't known. */
export const unknownChangesText = ({
  sequence,
  rows,
  sources,
}: Pick<Commit, "sequence" | "rows" | "sources">): string =>
  sequence === 1
    ? `The first version: ${counted(rows, "row")} of ${counted(sources, "source")}.`
    : "The version before is no longer kept, so its changes can't be shown.";

const CHANGES = {
  added: "added",
  changed: "changed",
  removed: "removed",
  archived: "archived: its CSV was removed, its rows stay",
  returned: "back in the lake",
} as const;

function Changes({ slug, table, sequence }: { slug: string; table: string; sequence: number }) {
  const { data, error, refetch } = useQuery(commitQuery(slug, table, sequence));
  if (error && !data) return <Failed title="Couldn't load the changes" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton lines={3} />;
  const { changes } = data;
  if (!changes) return <p class="secondary">{unknownChangesText(data)}</p>;
  const { sources, sources_changed, partitions, partitions_changed } = changes;
  return (
    <div class="data-changes">
      <p>{changesText(changes)}</p>
      {sources.length > 0 && (
        <ul>
          {sources.map(({ source, change, rows_before, rows_after }) => (
            <li key={source}>
              <code>{source}</code> {CHANGES[change]}
              <span class="dim">
                {" "}
                · {count(rows_before)} → {counted(rows_after, "row")}
              </span>
            </li>
          ))}
          {sources_changed > sources.length && <li>and {counted(sources_changed - sources.length, "more source")}</li>}
        </ul>
      )}
      {partitions.some(({ partition }) => partition !== "") && (
        <p class="secondary">
          Partitions: {partitions.map(({ partition }) => partitionText(partition)).join(", ")}
          {partitions_changed > partitions.length && ` and ${count(partitions_changed - partitions.length)} more`}
        </p>
      )}
    </div>
  );
}

function Restore({
  slug,
  table,
  commit,
  onClose,
}: {
  slug: string;
  table: string;
  commit: Commit;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const [busy, setBusy] = useState(false);
  const { waiting, whenIdle } = useWhenIdle();
  const restore = async () => {
    setBusy(true);
    try {
      const params = { path: { pipeline: slug, table } };
      const body = { sequence: commit.sequence };
      const made = await whenIdle(() => ask(api.POST("/api/p/{pipeline}/tables/{table}/restore", { params, body })));
      await cache.invalidateQueries({ queryKey: keys.tables(slug) });
      toast.done(`Version ${commit.sequence} restored as version ${made.sequence}`);
      onClose();
    } catch (error) {
      toast.failed("Couldn't restore the version", error);
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Restore version ${commit.sequence} of ${table}?`}
      action="Restore"
      busy={busy}
      onConfirm={() => void restore()}
      onClose={onClose}
    >
      <p>
        The table gets the {counted(commit.rows, "row")} of {exact(new Date(commit.committed_at))} as a new version. The
        current version is kept, too.
      </p>
      <p>
        The next run brings the table up to date with the CSVs in the lake. To keep the restored rows, undo the changes
        of the CSVs, too.
      </p>
      {waiting && <Note>A run is in progress. The version will be restored when the run ends.</Note>}
    </Confirm>
  );
}
