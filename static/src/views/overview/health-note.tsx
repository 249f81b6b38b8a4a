import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import type { Job, PipelineDetail, PipelineStatus } from "../../api/types";
import { Button } from "../../components/button";
import { Note } from "../../components/states";
import { Countdown } from "../../components/time";
import { useRun } from "../../shell/pipeline";
import { askForFiles } from "../../shell/upload-request";
import { REPAIR, routes } from "../../browser/routes";
import { MessageText } from "../../components/message-text";
import { healthOf, type Step } from "./health";

function StepButton({ slug, step, first }: { slug: string; step: Step; first: boolean }) {
  const { run, busy } = useRun(slug);
  if (step.kind === "run") {
    return (
      <Button variant={first ? "primary" : "plain"} busy={busy} onClick={() => void run(false)}>
        {step.words}
      </Button>
    );
  }
  if (step.kind === "upload") {
    return (
      <Button variant={first ? "primary" : "plain"} onClick={() => askForFiles(slug)}>
        {step.words}
      </Button>
    );
  }
  return (
    <Link class="button" href={`~${placeOf(slug, step)}`} {...(step.kind === "fix-dashboard" ? { state: REPAIR } : {})}>
      {step.words}
    </Link>
  );
}

function placeOf(slug: string, step: Step): string {
  switch (step.kind) {
    case "config":
      return routes.config(slug);
    case "from-csv":
      return routes.fromCsv({ pipeline: slug });
    case "table":
      return routes.fromCsv({ key: `pipelines/${slug}/${step.key}` });
    case "jobs":
      return routes.jobs(slug);
    case "job":
      return routes.job(slug, step.id);
    case "rejected":
      return routes.data(slug, step.table, { tab: "rejected" });
    case "dashboard":
      return routes.dashboard(slug, step.name);
    case "fix-dashboard":
      return routes.editDashboard(slug, step.name);
    case "run":
    case "upload":
      return routes.pipeline(slug);
  }
}

/** Health of the pipeline with the next step and the next run. */
export function HealthNote({
  slug,
  detail,
  jobs,
  dashboard,
  broken,
  status,
}: {
  slug: string;
  detail: Pick<PipelineDetail, "config" | "problems" | "tables" | "next_due">;
  jobs: Job[];
  /** The first published one that works. */
  dashboard: string | undefined;
  /** Published ones that don't. */
  broken: string[];
  status: PipelineStatus | undefined;
}): ComponentChildren {
  const health = healthOf({ detail, jobs, dashboard, broken, status });
  return (
    <Note tone={health.tone}>
      <div class="overview-health" data-tone={health.tone}>
        <div class="grow">
          <p class="overview-sentence">
            <MessageText text={health.sentence} />
            {!/[.!?]$/.test(health.sentence) && "."}
          </p>
          <p class="secondary">
            {health.more}{" "}
            {health.due && (
              <>
                Next run <Countdown to={health.due} />.
              </>
            )}
          </p>
        </div>
        <div class="row wrap">
          {health.steps.map((step, at) => (
            <StepButton key={step.words} slug={slug} step={step} first={at === 0} />
          ))}
        </div>
      </div>
    </Note>
  );
}
