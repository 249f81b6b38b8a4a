import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { statusQuery } from "../../api/queries";
import type { LakeFile } from "../../api/types";
import { Badge, type Tone } from "../../components/status";
import { counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { mayList } from "../../runs/table-state";
import { inPipeline, pipelineOf } from "../../uploads/keys";

type State = NonNullable<LakeFile["state"]>;

const LOADED_LABELS: Record<State["loaded"], { tone: Tone; word: string; title: string }> = {
  loaded: { tone: "ok", word: "loaded", title: "The table has its rows." },
  changed: { tone: "warn", word: "changed", title: "Changed since it was read. The next run reads it again." },
  new: { tone: "run", word: "new", title: "The next run reads this file." },
  not_read: { tone: "neutral", word: "not read", title: "No table reads this file." },
  unknown: { tone: "neutral", word: "unknown", title: "The status is currently unknown." },
};

/** Status of a file: which tables read it, and whether they are up to date. */
export function FileState({ file }: { file: LakeFile }) {
  const slug = pipelineOf(file.key);
  const state = file.state;
  if (!state || !slug) return <span class="dim">–</span>;
  return <KnownState slug={slug} file={file} state={state} />;
}

/** The failed run that left a file out; undefined if the file came after its start. */
function useFailedRun(slug: string, source: string, waits: boolean) {
  const { data } = useQuery({ ...statusQuery(slug), enabled: waits });
  const last = data?.last_job;
  if (!waits || !last || data.active || last.status !== "failed" || last.error_code === "cancelled") return undefined;
  return data.tables.some(({ untried }) => mayList(untried, source)) ? undefined : last;
}

function KnownState({ slug, file, state }: { slug: string; file: LakeFile; state: State }) {
  const source = inPipeline(slug, file.key);
  const failed = useFailedRun(slug, source, state.loaded === "new" || state.loaded === "changed");
  const { tone, word, title } = failed
    ? { tone: "bad" as const, word: "not loaded", title: `The last run failed: ${failed.error_message ?? ""}` }
    : LOADED_LABELS[state.loaded];
  return (
    <span class="lake-state">
      <Badge tone={tone} title={title}>
        {word}
      </Badge>
      {failed && <Link href={routes.job(slug, failed.job_id)}>run failed</Link>}
      {state.tables.map((table) => (
        <Link key={table} href={routes.data(slug, table)}>
          {table}
        </Link>
      ))}
      {state.rows_rejected !== null && state.rows_rejected > 0 && state.tables[0] !== undefined && (
        <Link class="lake-rejected" href={routes.data(slug, state.tables[0], { tab: "rejected", source })}>
          {counted(state.rows_rejected, "row")} rejected
        </Link>
      )}
    </span>
  );
}
