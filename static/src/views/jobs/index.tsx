import { X } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation, useParams } from "wouter-preact";
import type { Job } from "../../api/types";
import { Button, IconButton } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { SelectField } from "../../components/field";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { useRun } from "../../shell/pipeline";
import { useQueryParams } from "../../browser/query-params";
import { routes } from "../../browser/routes";
import { askForFiles } from "../../shell/upload-request";
import { useShortcuts } from "../../browser/shortcuts";
import { triggerWords } from "../../runs/text";
import { JobDetail } from "./detail";
import { matches, useHistory } from "./history";
import { JobTable } from "./list";
import "./jobs.css";

/** Minimum width for list and details side by side. */
const SIDE_BY_SIDE = window.matchMedia("(min-width: 1200px)");

function useSideBySide(): boolean {
  const [beside, setBeside] = useState(SIDE_BY_SIDE.matches);
  useEffect(() => {
    const changed = () => setBeside(SIDE_BY_SIDE.matches);
    SIDE_BY_SIDE.addEventListener("change", changed);
    return () => SIDE_BY_SIDE.removeEventListener("change", changed);
  }, []);
  return beside;
}

function Filters({ jobs, shown }: { jobs: Job[]; shown: number }) {
  const [search, set] = useQueryParams();
  const triggers = [...new Set(["manual", "auto", ...jobs.map((job) => job.trigger)])];
  const status = search.get("status") ?? "";
  const trigger = search.get("trigger") ?? "";
  return (
    <>
      <span class="grow secondary" role="status">
        {(status || trigger) && `${shown} of ${jobs.length} shown`}
      </span>
      <SelectField label="Status" bare value={status} onChange={(event) => set("status", event.currentTarget.value)}>
        <option value="">All statuses</option>
        {["active", "completed", "failed"].map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </SelectField>
      <SelectField label="Trigger" bare value={trigger} onChange={(event) => set("trigger", event.currentTarget.value)}>
        <option value="">All triggers</option>
        {triggers.map((one) => (
          <option key={one} value={one}>
            {triggerWords(one)}
          </option>
        ))}
      </SelectField>
    </>
  );
}

function useJobKeys(slug: string, jobs: Job[], id: string | undefined, search: string): void {
  const [, go] = useLocation();
  const step = (by: number) => {
    const at = jobs.findIndex((job) => job.job_id === id);
    const to = jobs[at < 0 ? 0 : at + by];
    if (to) go(`~${routes.job(slug, to.job_id)}${search}`);
  };
  useShortcuts([
    { keys: "j", does: "Next job", run: () => step(1) },
    { keys: "k", does: "Previous job", run: () => step(-1) },
    { keys: "Escape", does: "Close job" },
  ]);
  useEffect(() => {
    if (!id) return undefined;
    // Not a shortcut, which would take the key from an open dialog.
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      go(`~${routes.jobs(slug)}${search}`);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [id, slug, search, go]);
}

function NoJobs({ slug }: { slug: string }) {
  const { run, busy } = useRun(slug);
  return (
    <Empty
      title="No runs yet"
      actions={
        <>
          <Button variant="primary" busy={busy} onClick={() => void run(false)}>
            Run
          </Button>
          <Button onClick={() => askForFiles(slug)}>Upload CSVs</Button>
        </>
      }
    >
      Runs are listed here with the rows read, written and rejected. Upload CSVs to start the first run automatically.
    </Empty>
  );
}

/** Jobs of a pipeline, with the selected one beside or above the list. */
export default function JobsView({ slug }: { slug: string }) {
  const { id } = useParams<{ id?: string }>();
  const [filters] = useQueryParams();
  const [, go] = useLocation();
  const beside = useSideBySide();
  const { query, jobs, more, older, busy } = useHistory(slug);
  const filter = { status: filters.get("status") ?? "", trigger: filters.get("trigger") ?? "" };
  const shown = jobs.filter((job) => matches(job, filter));
  const search = filters.size > 0 ? `?${filters.toString()}` : "";
  useJobKeys(slug, shown, id, search);
  const close = () => go(`~${routes.jobs(slug)}${search}`);
  const list = (
    <div class="jobs-list">
      <header class="page-head">
        <h1>Jobs</h1>
        {(!query.data || jobs.length > 0) && <Filters jobs={jobs} shown={shown.length} />}
      </header>
      {query.isPending && <Skeleton lines={8} label="Loading the jobs" />}
      {query.isError && jobs.length === 0 && (
        <Failed title="Couldn't load the jobs" error={query.error} onRetry={() => void query.refetch()} />
      )}
      {query.data && jobs.length === 0 && <NoJobs slug={slug} />}
      {jobs.length > 0 && shown.length === 0 && (
        <Empty
          title="No jobs match the filters"
          actions={<Button onClick={() => go(`~${routes.jobs(slug)}`)}>Clear filters</Button>}
        >
          {more && "Older jobs may match."}
        </Empty>
      )}
      {shown.length > 0 && (
        <JobTable jobs={shown} chosen={id} addressOf={(job) => `~${routes.job(slug, job.job_id)}${search}`} />
      )}
      {more && (
        <Button class="jobs-older" busy={busy} onClick={() => void older()}>
          Show older jobs
        </Button>
      )}
    </div>
  );
  return (
    <Page title={`Jobs · ${slug}`} full>
      <div class={id && beside ? "jobs split" : "jobs"}>
        {list}
        {id && beside && (
          <aside class="jobs-detail" aria-label="Job">
            <header class="row">
              <h2 class="grow">Job</h2>
              <IconButton label="Close job" icon={<X />} onClick={close} />
            </header>
            <JobDetail key={id} slug={slug} id={id} />
          </aside>
        )}
        {id && !beside && (
          <Dialog title="Job" kind="drawer" onClose={close}>
            <JobDetail key={id} slug={slug} id={id} />
          </Dialog>
        )}
      </div>
    </Page>
  );
}
