import { useQuery } from "@tanstack/preact-query";
import { Download } from "lucide-preact";
import { Link } from "wouter-preact";
import { Failed, Skeleton } from "../../components/states";
import { count, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { MessageText } from "../../components/message-text";
import { rejectWords } from "../../format/reject";
import { jobRejectsQuery, jobRejectsRoute, type JobReject } from "../../runs/failed-files";

function Rows({ slug, rows }: { slug: string; rows: JobReject[] }) {
  return (
    <div class="table-box job-rejects">
      <table class="table stacks">
        <thead>
          <tr>
            <th>Location</th>
            <th>Column</th>
            <th>Value</th>
            <th>Reason</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              <td>
                <Link href={`~${routes.source(slug, row.source, row.line)}`}>
                  {row.source}
                  {row.line !== null && `:${String(row.line)}`}
                </Link>
              </td>
              <td data-label="Column">{row.column ?? <span class="dim">–</span>}</td>
              <td class="mono job-rejects-value" data-label="Value" title={row.raw ?? undefined}>
                {row.value ?? <span class="dim">–</span>}
              </td>
              <td class="whole" title={row.message}>
                <MessageText text={rejectWords(row)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Rows that failed a run: the first hundred, and all as a file. */
export function JobRejects({ slug, id }: { slug: string; id: string }) {
  const { data, error, isPending, refetch } = useQuery(jobRejectsQuery(slug, id));
  return (
    <section class="section" aria-label="Rejected rows">
      <header class="row">
        <h3 class="grow">
          {data ? counted(data.total, "rejected row") : "Rejected rows"}
          {data && data.total > data.rows.length && <span class="dim"> (first {count(data.rows.length)} shown)</span>}
        </h3>
        <a class="button" href={jobRejectsRoute(slug, id)} download>
          <Download aria-hidden="true" />
          Download all
        </a>
      </header>
      {isPending && <Skeleton lines={4} label="Loading the rejected rows" />}
      {error && <Failed title="Couldn't load the rejected rows" error={error} onRetry={() => void refetch()} />}
      {data && <Rows slug={slug} rows={data.rows} />}
    </section>
  );
}
