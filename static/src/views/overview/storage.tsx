import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { statusQuery } from "../../api/queries";
import type { Job, Table } from "../../api/types";
import { Section } from "../../components/page";
import { Time } from "../../components/time";
import { bytes, count, counted, share } from "../../format/number";
import { routes } from "../../browser/routes";
import { failedFiles, waitingFiles } from "../../runs/table-state";
import { lastNewFiles } from "./changes";

const SHOWN = 5;

/** Storage used, and freshness. */
export function Storage({ slug, tables, jobs }: { slug: string; tables: Table[] | undefined; jobs: Job[] }) {
  const own = (tables ?? []).filter(({ system }) => !system);
  const sized = own.map(({ name, bytes: size }) => ({ name, size: size ?? 0 })).sort((a, b) => b.size - a.size);
  const total = sized.reduce((sum, { size }) => sum + size, 0);
  const files = own.reduce((sum, { file_count }) => sum + file_count, 0);
  const { data: status } = useQuery(statusQuery(slug));
  const failed = status ? failedFiles(status) : 0;
  const waiting = status ? waitingFiles(status) : 0;
  const found = lastNewFiles(jobs);
  const newest = jobs.find(({ status: ended }) => ended === "completed");
  return (
    <Section
      title="Storage and freshness"
      actions={<Link href={`~${routes.lake(`pipelines/${slug}/`)}`}>CSVs in the lake</Link>}
    >
      <div class="card overview-storage">
        <dl>
          <div>
            <dt>Tables</dt>
            <dd>{tables ? `${bytes(total)} in ${counted(files, "Parquet file")}` : "–"}</dd>
          </div>
          <div>
            <dt>New files last loaded</dt>
            <dd>
              {failed > 0 ? (
                `${counted(failed, "file")} failed to load`
              ) : waiting > 0 ? (
                `${counted(waiting, "file")}, not loaded yet`
              ) : found ? (
                <>
                  <Time at={found.job.started_at} />, {counted(found.files, "file")}
                </>
              ) : (
                "None in the last runs"
              )}
            </dd>
          </div>
          <div>
            <dt>Last successful run</dt>
            <dd>
              <Time at={newest?.finished_at} />
            </dd>
          </div>
        </dl>
        <ul>
          {sized.slice(0, SHOWN).map(({ name, size }) => (
            <li key={name}>
              <span class="row">
                <span class="grow cut">{name}</span>
                <span class="num">{bytes(size)}</span>
              </span>
              <span class="overview-share" title={total > 0 ? share(size / total) : undefined}>
                <span style={{ width: `${String(total > 0 ? (100 * size) / total : 0)}%` }} />
              </span>
            </li>
          ))}
          {sized.length > SHOWN && <li class="dim">and {count(sized.length - SHOWN)} more</li>}
        </ul>
      </div>
    </Section>
  );
}
