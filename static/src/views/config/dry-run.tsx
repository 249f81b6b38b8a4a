/** Checks the edited config against all files: a worker converts them and writes nothing. */
import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { CircleCheckBig, Square } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, ask, sendRaw } from "../../api/client";
import { isActive, jobQuery, keys } from "../../api/queries";
import type { Job } from "../../api/types";
import { Button } from "../../components/button";
import { MessageText } from "../../components/message-text";
import { Failed, Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { count, counted } from "../../format/number";
import { ActiveText, RateText, RunProgress } from "../../runs/progress";
import { RejectedRows } from "./rejected-rows";
import { prefixOf } from "./service";

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

/** What a completed dry run found, for each table and in all. */
function DryRunResult({ slug, job }: { slug: string; job: Job }) {
  const tables = Object.entries(job.result?.tables ?? {});
  const rejected = sum(tables.map(([, table]) => table.rows_rejected));
  const rows = job.result?.rejected_rows ?? [];
  const files = job.progress?.files_done ?? 0;
  if (files === 0) return <Note tone="warn">No file matches the tables of this config.</Note>;
  return (
    <>
      <Note tone={rejected > 0 ? "warn" : "ok"}>
        {counted(job.progress?.rows_read ?? 0, "row")} of {counted(files, "file")} read:{" "}
        {rejected > 0 ? `${counted(rejected, "row")} would be rejected.` : "no row would be rejected."}
      </Note>
      <div class="table-box">
        <table class="table">
          <caption class="for-readers">Tables after a run of this config</caption>
          <thead>
            <tr>
              <th>Table</th>
              <th class="num">Files</th>
              <th class="num">Rows</th>
              <th class="num">Rejected</th>
              <th class="num">Filtered</th>
            </tr>
          </thead>
          <tbody>
            {tables.map(([name, table]) => (
              <tr key={name}>
                <td>
                  <code>{name}</code>
                </td>
                <td class="num">{count(table.sources_read)}</td>
                <td class="num">{count(table.rows_written)}</td>
                <td class="num">{count(table.rows_rejected)}</td>
                <td class="num">{count(table.rows_filtered)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {tables.flatMap(([name, table]) =>
        Object.entries(table.warnings ?? {}).map(([check, failing]) => (
          <Note key={`${name}/${check}`} tone="warn">
            Check <code>{check}</code> of <code>{name}</code>: {counted(failing, "row")} would fail and still be
            written.
          </Note>
        )),
      )}
      {rejected > rows.length && rows.length > 0 && (
        <p class="secondary">The first {count(rows.length)} rejected rows:</p>
      )}
      <RejectedRows
        caption="Rejected rows of all files"
        rows={rows.map((row, at) => ({
          id: String(at),
          key: `${prefixOf(slug)}${row.source}`,
          file: row.source,
          line: row.line,
          column: row.column,
          value: row.value ?? "",
          message: row.message,
        }))}
      />
    </>
  );
}

function Outcome({ slug, job }: { slug: string; job: Job }) {
  if (job.status === "completed") return <DryRunResult slug={slug} job={job} />;
  if (job.error?.code === "cancelled") return <Note>The check was cancelled.</Note>;
  const { rows, rest } = rowsOfDetail(job.error?.detail ?? "");
  return (
    <>
      <Note tone="bad">
        A run would fail: <MessageText text={job.error?.message ?? "unknown cause"} />
        {rest !== "" && (
          <pre class="config-detail">
            <MessageText text={rest} />
          </pre>
        )}
      </Note>
      {rows.length > 0 && <p class="secondary">The first rejected rows:</p>}
      <RejectedRows
        caption="Rejected rows that fail the run"
        rows={rows.map((row, at) => ({ ...row, id: String(at), key: `${prefixOf(slug)}${row.file}` }))}
      />
    </>
  );
}

/** A rejected row as a failure describes it: file, line, column, and the reason with the value. */
const DETAIL_ROW = /^`([^`]+)` line (\d+): (?:column `([^`]+)`: )?(.*)$/;

/** The rejected rows that the detail of a failure lists, and the rest of its text. */
export function rowsOfDetail(detail: string) {
  const rows: { file: string; line: number; column: string | undefined; value: string; message: string }[] = [];
  const rest: string[] = [];
  for (const text of detail.split("\n")) {
    const [, file, line, column, message = ""] = DETAIL_ROW.exec(text) ?? [];
    if (file === undefined) rest.push(text);
    else rows.push({ file, line: Number(line), column, value: /found `([^`]*)`/.exec(message)?.[1] ?? "", message });
  }
  return { rows, rest: rest.join("\n") };
}

export function DryRun({ slug, text, disabled }: { slug: string; text: string; disabled: boolean }) {
  const cache = useQueryClient();
  const [started, setStarted] = useState<{ id: string; text: string }>();
  const [busy, setBusy] = useState(false);
  const {
    data: job,
    error,
    refetch,
  } = useQuery({
    ...jobQuery(slug, started?.id ?? ""),
    enabled: started !== undefined,
  });
  const doing = async (failed: string, action: () => Promise<void>) => {
    setBusy(true);
    try {
      await action();
    } catch (problem) {
      toast.failed(failed, problem);
    } finally {
      setBusy(false);
      void cache.invalidateQueries({ queryKey: keys.jobs(slug) });
    }
  };
  const start = () =>
    doing("Couldn't check the files", async () => {
      const init = { method: "POST", body: text, headers: { "Content-Type": "application/json" } };
      const reply = await sendRaw(`/api/p/${encodeURIComponent(slug)}/dry-runs`, init);
      const queued = (await reply.json()) as Job;
      cache.setQueryData(jobQuery(slug, queued.job_id).queryKey, queued);
      setStarted({ id: queued.job_id, text });
    });
  const cancel = (id: string) =>
    doing("Couldn't cancel the check", async () => {
      const params = { path: { pipeline: slug, id } };
      const now = await ask(api.POST("/api/p/{pipeline}/jobs/{id}/cancel", { params }));
      cache.setQueryData(jobQuery(slug, id).queryKey, now);
    });
  if (started && error && !job)
    return <Failed title="Couldn't load the check" error={error} onRetry={() => void refetch()} />;
  if (started && job && isActive(job)) {
    return (
      <div class="stack">
        <RunProgress job={job} />
        <p class="row secondary">
          <span class="grow cut">
            <ActiveText job={job} />
          </span>
          <span class="num">
            <RateText job={job} />
          </span>
          <Button icon={<Square />} busy={busy} onClick={() => void cancel(job.job_id)}>
            Cancel check
          </Button>
        </p>
      </div>
    );
  }
  return (
    <div class="stack">
      <p class="row">
        <span class="grow secondary">Reads every file of the pipeline with this config, and writes nothing.</span>
        <Button icon={<CircleCheckBig />} busy={busy} disabled={disabled} onClick={() => void start()}>
          Check all files
        </Button>
      </p>
      {job && (
        <>
          {started && started.text !== text && <Note>The config has changed since this check.</Note>}
          <Outcome slug={slug} job={job} />
        </>
      )}
    </div>
  );
}
