import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { Play, Star, Upload } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask } from "../api/client";
import { asFailure } from "../api/failure";
import { isActive, jobQuery, jobsQuery, keys, pipelinesQuery, settingsQuery, statusQuery } from "../api/queries";
import { isPaused, pauseOf, pausesQuery } from "../api/pauses";
import { changeStars } from "../api/settings";
import { useBrokenPublished } from "../boards/broken";
import { brokenText } from "../boards/broken-text";
import { Button, IconButton } from "../components/button";
import { Confirm } from "../components/dialog";
import { Menu } from "../components/menu";
import { Empty } from "../components/states";
import { Badge } from "../components/status";
import { Time } from "../components/time";
import { toast } from "../components/toasts";
import { counted } from "../format/number";
import { slugFrom } from "../format/slug";
import { routes } from "../browser/routes";
import { useShortcuts } from "../browser/shortcuts";
import { pipelineState, succeededAt } from "../runs/table-state";
import { PauseDialog, PausedBadge, PauseNotice, useResume } from "./pause";
import { askForFiles } from "./upload-request";
import "./pipeline.css";

const TABS = [
  { name: "Overview", key: "o", place: routes.pipeline },
  { name: "Data", key: "d", place: (slug: string) => routes.data(slug) },
  { name: "Query", key: "q", place: (slug: string) => routes.query(slug) },
  { name: "Dashboards", key: "b", place: routes.dashboards },
  { name: "Jobs", key: "j", place: routes.jobs },
  { name: "Config", key: "c", place: (slug: string) => routes.config(slug) },
] as const;

/** A path, from the pipeline on or whole. */
const SHOWS_JOB = /\/jobs\/[^/]+$/;

/** Enqueues a run and shows it immediately: where a job was shown, the new one takes its place. */
export function useRun(slug: string): { run: (clean: boolean) => Promise<void>; busy: boolean } {
  const cache = useQueryClient();
  const [path, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const run = async (clean: boolean) => {
    setBusy(true);
    try {
      const job = await ask(
        api.POST("/api/p/{pipeline}/jobs", { params: { path: { pipeline: slug }, query: clean ? { clean } : {} } }),
      );
      cache.setQueryData(jobsQuery(slug).queryKey, (listed) => listed && { ...listed, jobs: [job, ...listed.jobs] });
      cache.setQueryData(jobQuery(slug, job.job_id).queryKey, job);
      if (SHOWS_JOB.test(path)) go(`~${routes.job(slug, job.job_id)}`);
      await cache.invalidateQueries({ queryKey: keys.jobs(slug) });
    } catch (error) {
      toast.failed("Couldn't start the run", error);
    } finally {
      setBusy(false);
    }
  };
  return { run, busy };
}

/** Confirms a clean run. */
export function CleanRun({ slug, onConfirm, onClose }: { slug: string; onConfirm: () => void; onClose: () => void }) {
  return (
    <Confirm title={`Clean run of ${slug}`} action="Start clean run" onClose={onClose} onConfirm={onConfirm}>
      <p>Reads every CSV again and rebuilds every table. Then deletes tables that are no longer in the config.</p>
      <p class="secondary">If the run fails, no tables are changed.</p>
    </Confirm>
  );
}

function RunButton({ slug }: { slug: string }) {
  const { run, busy } = useRun(slug);
  const { data: pauses } = useQuery(pausesQuery());
  const { resume } = useResume(slug);
  const [asking, setAsking] = useState<"clean" | "pause">();
  return (
    <span class="split-button">
      <Button icon={<Play />} busy={busy} onClick={() => void run(false)}>
        Run
      </Button>
      <Menu
        label="More run options"
        button="▾"
        items={[
          {
            label: "Run",
            hint: "Reads files that changed since the last successful run",
            onSelect: () => void run(false),
          },
          {
            label: "Clean run…",
            hint: "Reads every CSV again and rebuilds every table",
            onSelect: () => setAsking("clean"),
          },
          pauseOf(pauses, slug)
            ? { label: "Resume runs", onSelect: () => void resume() }
            : {
                label: "Pause runs…",
                hint: "New files and runs wait until you resume",
                onSelect: () => setAsking("pause"),
              },
        ]}
      />
      {asking === "clean" && (
        <CleanRun
          slug={slug}
          onClose={() => setAsking(undefined)}
          onConfirm={() => {
            setAsking(undefined);
            void run(true);
          }}
        />
      )}
      {asking === "pause" && <PauseDialog slug={slug} onClose={() => setAsking(undefined)} />}
    </span>
  );
}

export function StarButton({ slug }: { slug: string }) {
  const cache = useQueryClient();
  const { data: settings } = useQuery(settingsQuery());
  const starred = settings?.starred.includes(slug) ?? false;
  const toggle = async () => {
    if (!settings) return;
    const change = (list: string[]) =>
      starred ? list.filter((one) => one !== slug) : [...list.filter((one) => one !== slug), slug];
    cache.setQueryData(keys.settings, { ...settings, starred: change(settings.starred) });
    try {
      await changeStars(cache, change);
    } catch (error) {
      cache.setQueryData(keys.settings, settings);
      toast.failed("Couldn't update the star", error);
    }
  };
  return (
    <IconButton
      label={starred ? "Unstar this pipeline" : "Star this pipeline"}
      aria-pressed={starred}
      class="star-button"
      icon={<Star />}
      onClick={() => void toggle()}
    />
  );
}

/** Health of a pipeline whose tables are up to date: that of its dashboards, and the rows that were rejected. */
function SettledHealth({ slug, rejected }: { slug: string; rejected: number }) {
  const broken = useBrokenPublished(slug);
  const { data: pauses } = useQuery(pausesQuery());
  // While runs are paused, nothing keeps the tables up to date.
  if (isPaused(pauses, slug) && !broken?.length) return null;
  if (!broken?.length && rejected > 0)
    return (
      <Badge tone="warn" title="The tables are up to date, but for these rows of their CSVs.">
        {counted(rejected, "rejected row")}
      </Badge>
    );
  if (!broken) return <Badge tone="ok">up to date</Badge>;
  if (broken.length === 0) return <Badge tone="ok">healthy</Badge>;
  return (
    <Badge tone="bad" title={`${brokenText(broken)}.`}>
      {counted(broken.length, "broken dashboard")}
    </Badge>
  );
}

function Health({ slug }: { slug: string }) {
  const { data } = useQuery(jobsQuery(slug));
  const { data: status } = useQuery(statusQuery(slug));
  const state = status && pipelineState({ ...status, succeeded: succeededAt(status, data?.jobs) });
  const rejected = status?.tables.reduce((rows, table) => rows + table.rows_rejected, 0) ?? 0;
  // A running job takes precedence over queued ones.
  const active = data?.jobs.find(({ status }) => status === "running") ?? data?.jobs.find(isActive);
  const ended = data?.jobs.find((job) => !isActive(job) && job.error?.code !== "cancelled");
  if (!data) return <span class="row" />;
  if (active || !ended)
    return (
      <span class="row">
        {active ? <Badge tone="run">{active.status}</Badge> : <Badge>no runs yet</Badge>}
        <PausedBadge slug={slug} />
      </span>
    );
  return (
    <span class="row secondary">
      <PausedBadge slug={slug} />
      {ended.status === "failed" ? (
        <Badge tone="bad">last run failed</Badge>
      ) : state ? (
        <Badge tone={state.tone} title={[state.sentence, ...state.more].join(" ")}>
          {state.label}
        </Badge>
      ) : (
        <SettledHealth slug={slug} rejected={rejected} />
      )}
      <span class="pipeline-last">
        {ended.status !== "failed" && "last run "}
        <Time at={ended.finished_at} />
      </span>
    </span>
  );
}

/** Frame of a pipeline's views: name, health, tabs, and the active run at the bottom. */
export function PipelineFrame({
  slug,
  foot,
  children,
}: {
  slug: string;
  /** Run bar below every view. */
  foot: ComponentChildren;
  children: ComponentChildren;
}) {
  const [path, go] = useLocation();
  const pipelines = useQuery(pipelinesQuery());
  const { error } = useQuery(jobsQuery(slug));
  const { run } = useRun(slug);
  const detail = pipelines.data?.pipelines.find((one) => one.slug === slug);
  const tabs = useRef<HTMLElement>(null);
  // Scrolls the open tab into view on narrow screens. `scrollIntoView` would move Chromium's Tab order.
  useEffect(() => {
    const [bar, open] = [tabs.current, tabs.current?.querySelector<HTMLElement>("[aria-current]")];
    if (bar && open) bar.scrollLeft = open.offsetLeft - bar.offsetLeft - (bar.clientWidth - open.offsetWidth) / 2;
  }, [path]);
  useShortcuts([
    ...TABS.map(({ name, key, place }) => ({
      keys: `g ${key}`,
      scope: "pipeline" as const,
      does: `Go to ${name}`,
      run: () => go(`~${place(slug)}`),
    })),
    { keys: "R", does: "Run the pipeline", scope: "pipeline", run: () => void run(false) },
    { keys: "U", does: "Upload CSVs", scope: "pipeline", run: () => askForFiles(slug) },
  ]);
  if (error && ["pipeline_not_found", "invalid_slug"].includes(asFailure(error).code)) {
    return (
      <Empty
        title={`There is no pipeline ${slug}`}
        actions={
          <a class="button" href={routes.home()}>
            All pipelines
          </a>
        }
      >
        It may have been renamed or deleted.
      </Empty>
    );
  }
  return (
    <div class="pipeline">
      <header class="pipeline-head">
        <StarButton slug={slug} />
        <h1 class="cut">{detail?.title || slug}</h1>
        {detail?.title && slugFrom(detail.title) !== slug && <span class="mono dim cut">{slug}</span>}
        <span class="grow" />
        <Health slug={slug} />
        <Button icon={<Upload />} onClick={() => askForFiles(slug)}>
          Upload
        </Button>
        <RunButton slug={slug} />
      </header>
      <nav class="tabs" aria-label="Pipeline" ref={tabs}>
        {TABS.map(({ name, place }) => {
          const relative = place(slug).slice(routes.pipeline(slug).length) || "/";
          const here =
            relative === "/" ? path === "/" || path === "" : path === relative || path.startsWith(`${relative}/`);
          return (
            <Link key={name} href={`~${place(slug)}`} aria-current={here ? "page" : undefined}>
              {name}
            </Link>
          );
        })}
      </nav>
      <div class="pipeline-notices">
        <PauseNotice slug={slug} />
      </div>
      <div class="pipeline-view">{children}</div>
      {foot}
    </div>
  );
}
