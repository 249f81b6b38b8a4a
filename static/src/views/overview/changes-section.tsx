import { useQueries, useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { commitsQuery, jobQuery } from "../../api/queries";
import type { Job } from "../../api/types";
import { Section } from "../../components/page";
import { Time } from "../../components/time";
import { counted, rowsChangeText } from "../../format/number";
import { routes } from "../../browser/routes";
import type { PartitionChange, TableOutcome } from "../../runs/outcome";
import { changesOf, lastChange, restoredSince, type RestoredTable } from "./changes";

const PARTITIONS_SHOWN = 5;

function PartitionLines({ changes, more }: { changes: PartitionChange[]; more: number }) {
  return (
    <ul class="overview-partitions">
      {changes.map((one) => (
        <li key={one.partition} class="row">
          <code class="grow cut">{one.partition}</code>
          <span class="num">
            {one.rows_before === null
              ? `new, ${counted(one.rows_after ?? 0, "row")}`
              : one.rows_after === null
                ? "deleted"
                : rowsChangeText(one.rows_after - one.rows_before)}
          </span>
        </li>
      ))}
      {more > 0 && <li class="dim">and {counted(more, "more partition")}</li>}
    </ul>
  );
}

/** Partitions with the largest changes. */
export function largestChanges(changes: PartitionChange[]): PartitionChange[] {
  const size = (one: PartitionChange) => Math.abs((one.rows_after ?? 0) - (one.rows_before ?? 0));
  return changes
    .filter(({ partition }) => partition !== "")
    .sort((a, b) => size(b) - size(a) || a.partition.localeCompare(b.partition))
    .slice(0, PARTITIONS_SHOWN);
}

function Changed({ slug, job, before }: { slug: string; job: Job; before: Job | undefined }) {
  // The list has no partitions.
  const { data: whole } = useQuery(jobQuery(slug, job.job_id));
  const tables = (whole?.result?.tables ?? {}) as Record<string, TableOutcome>;
  const changes = changesOf(whole ?? job, before);
  return (
    <div class="card overview-changes">
      <p class="secondary">
        Run{" "}
        <Link href={`~${routes.job(slug, job.job_id)}`}>
          <Time at={job.finished_at} />
        </Link>
      </p>
      <ul>
        {changes.map((change) => {
          const changes = tables[change.table]?.changes;
          const shown = largestChanges(changes?.partitions ?? []);
          return (
            <li key={change.table}>
              <div class="row">
                <Link href={`~${routes.data(slug, change.table)}`} class="grow cut">
                  {change.table}
                </Link>
                {change.partitions > 1 && <span class="dim">{counted(change.partitions, "partition")}</span>}
                <span class="num">
                  {change.isNew || change.change === undefined
                    ? `new, ${counted(change.rows, "row")}`
                    : rowsChangeText(change.change)}
                </span>
              </div>
              {shown.length > 0 && change.partitions > 1 && (
                <PartitionLines changes={shown} more={(changes?.partitions_total ?? shown.length) - shown.length} />
              )}
            </li>
          );
        })}
        {job.result?.dropped?.map((table) => (
          <li key={`dropped ${table}`} class="row">
            <span class="grow cut">{table}</span>
            <span class="num">deleted</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Tables whose newest versions are looked up. */
const TABLES_MAX = 10;

/** The tables that were restored since the last completed run. */
function useRestored(slug: string, jobs: Job[], tables: readonly string[]): RestoredTable[] {
  const last = jobs.find(({ status }) => status === "completed");
  const names = tables.slice(0, TABLES_MAX);
  const found = useQueries({ queries: names.map((table) => commitsQuery(slug, table)) });
  return restoredSince(
    last,
    names.map((table, at) => ({ table, commits: found[at]?.data?.commits ?? [] })),
  );
}

/** Row changes of the last run that changed a table. */
export function Changes({ slug, jobs, tables }: { slug: string; jobs: Job[]; tables: readonly string[] }) {
  const last = lastChange(jobs);
  const restored = useRestored(slug, jobs, tables);
  return (
    <Section title="Latest changes">
      {restored.length > 0 && (
        <div class="card overview-changes">
          <p class="secondary">
            Earlier versions restored <Time at={restored[0]?.at ?? null} />
          </p>
          <ul>
            {restored.map(({ table, version, rows, change }) => (
              <li key={table}>
                <div class="row">
                  <Link href={`~${routes.data(slug, table, { tab: "versions" })}`} class="grow cut">
                    {table}
                  </Link>
                  <span class="dim">version {version}</span>
                  <span class="num">{change === undefined ? counted(rows, "row") : rowsChangeText(change)}</span>
                </div>
              </li>
            ))}
          </ul>
        </div>
      )}
      {last ? (
        <Changed key={last.job.job_id} slug={slug} job={last.job} before={last.before} />
      ) : (
        <p class="card secondary">None of the last {counted(jobs.length, "run")} changed any table.</p>
      )}
    </Section>
  );
}
