import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import { Note } from "../../components/states";
import { Countdown } from "../../components/time";
import { StateButton } from "../../shell/state-notice";
import { REPAIR, routes } from "../../browser/routes";
import { MessageText } from "../../components/message-text";
import { healthOf, type Facts, type Step } from "./health";

function StepButton({ slug, step, first }: { slug: string; step: Step; first: boolean }) {
  const link = (to: string, state?: unknown) => (
    <Link
      class={`button ${first && step.kind === "from-csv" ? "primary" : ""}`}
      href={`~${to}`}
      {...(state === undefined ? {} : { state })}
    >
      {step.words}
    </Link>
  );
  switch (step.kind) {
    case "from-csv":
      return link(routes.fromCsv({ pipeline: slug }));
    case "jobs":
      return link(routes.jobs(slug));
    case "rejected":
      return link(routes.data(slug, step.table, { tab: "rejected" }));
    case "dashboard":
      return link(routes.dashboard(slug, step.name));
    case "fix-dashboard":
      return link(routes.editDashboard(slug, step.name), REPAIR);
    case "run":
    case "config":
    case "upload":
    case "job":
    case "adapt":
    case "clean":
    case "table":
      return <StateButton slug={slug} action={step} first={first} />;
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
}: Facts & { slug: string }): ComponentChildren {
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
            <MessageText text={health.more ?? ""} />{" "}
            {health.due && (
              <>
                A run starts <Countdown to={health.due} />.
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
