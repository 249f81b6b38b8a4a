import { useQuery } from "@tanstack/preact-query";
import type { ComponentChildren } from "preact";
import { dashboardsQuery, jobsQuery, pipelinesQuery, statusQuery, tablesQuery } from "../../api/queries";
import { useBrokenPublished } from "../../boards/broken";
import { useTitled } from "../../boards/titles";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { useDue } from "../../shell/state-notice";
import { Changes } from "./changes-section";
import { Dashboards } from "./dashboards";
import { FirstFiles } from "./first-files";
import { HealthNote } from "./health-note";
import { Runs } from "./runs";
import { Storage } from "./storage";
import { Tables } from "./tables";
import "./overview.css";

function Frame({ slug, children }: { slug: string; children: ComponentChildren }) {
  return (
    <Page title={`Overview · ${slug}`}>
      <h1 class="for-readers">Overview of {slug}</h1>
      {children}
    </Page>
  );
}

/** Overview of a pipeline. */
export default function OverviewView({ slug }: { slug: string }) {
  const pipelines = useQuery(pipelinesQuery());
  const jobs = useQuery(jobsQuery(slug));
  const detail = pipelines.data?.pipelines.find((one) => one.slug === slug);
  const tables = useQuery(tablesQuery(slug));
  const status = useQuery(statusQuery(slug));
  const dashboards = useQuery({ ...dashboardsQuery(slug), enabled: detail?.config === "valid" });
  const broken = useBrokenPublished(slug, detail?.config === "valid") ?? [];
  const due = useDue(slug) ?? null;
  const titled = useTitled(slug, dashboards.data?.dashboards);
  const isBroken = (name: string) => broken.some((one) => one.name === name);
  if (!pipelines.data || !jobs.data) {
    const error = pipelines.error ?? jobs.error;
    return (
      <Frame slug={slug}>
        {error ? (
          <Failed
            title="Couldn't load the overview"
            error={error}
            onRetry={() => {
              void pipelines.refetch();
              void jobs.refetch();
            }}
          />
        ) : (
          <Skeletons />
        )}
      </Frame>
    );
  }
  // Long listings may be cut off, and new pipelines may be missing.
  const known = detail
    ? { ...detail, next_due: due }
    : { slug, config: "valid" as const, problems: 0, tables: 0, next_due: null };
  const ran = jobs.data.jobs.some(({ status }) => status === "completed");
  return (
    <Frame slug={slug}>
      {detail || jobs.data.jobs.length > 0 ? (
        <HealthNote
          slug={slug}
          detail={known}
          jobs={jobs.data.jobs}
          status={status.data}
          dashboard={titled.find(({ name, published }) => published && !isBroken(name))}
          broken={broken}
        />
      ) : (
        <Skeleton lines={2} />
      )}
      {!ran && <FirstFiles slug={slug} />}
      {(ran || (tables.data?.tables.length ?? 0) > 0) && (
        <Tables
          slug={slug}
          tables={tables.data?.tables}
          expected={detail?.tables ?? 0}
          error={tables.error}
          onRetry={() => void tables.refetch()}
        />
      )}
      {detail?.config === "valid" && <Dashboards slug={slug} ran={ran} />}
      <div class="overview-columns">
        {jobs.data.jobs.length > 0 && <Runs slug={slug} jobs={jobs.data.jobs} />}
        {ran && (
          <Changes
            slug={slug}
            jobs={jobs.data.jobs}
            tables={(tables.data?.tables ?? []).filter(({ system }) => !system).map(({ name }) => name)}
          />
        )}
        {ran && <Storage slug={slug} tables={tables.data?.tables} jobs={jobs.data.jobs} />}
      </div>
    </Frame>
  );
}

function Skeletons() {
  return (
    <>
      <Skeleton lines={2} label="Loading the overview" />
      <Skeleton lines={6} label="Loading the tables" />
      <div class="overview-columns">
        <Skeleton lines={6} label="Loading the runs" />
        <Skeleton lines={6} label="Loading the latest changes" />
      </div>
    </>
  );
}
