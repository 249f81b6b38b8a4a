import { Play } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Job, RunError } from "../../api/types";
import { Button } from "../../components/button";
import { CleanRun, useRun } from "../../shell/pipeline";
import { StateButton } from "../../shell/state-notice";
import { useQuery } from "@tanstack/preact-query";
import { statusQuery } from "../../api/queries";
import { routes } from "../../browser/routes";
import { useJobActions } from "./detail";
import { JobRejects } from "./rejects";
import { MessageText } from "../../components/message-text";
import { failureWords } from "../../format/reject";
import { sentence } from "../../format/text";
import { isAbout, isMisread } from "../../runs/table-state";
import { locationOf, remedyOfRun, type ErrorLocation, type Step } from "./remedies";

function LocationLink({ slug, place }: { slug: string; place: ErrorLocation }) {
  if (place.kind === "config") {
    return (
      <Link href={`~${routes.config(slug, place.pointer)}`}>
        config <code>{place.pointer || "/"}</code>
      </Link>
    );
  }
  if (place.kind === "lake") {
    const { prefix, file, line } = place;
    return (
      <Link href={`~${lakeRoute(place)}`}>
        <code>{file ?? prefix}</code>
        {line !== undefined && ` line ${String(line)}`}
      </Link>
    );
  }
  return <code>{place.text}</code>;
}

const lakeRoute = ({ prefix, file, line }: Extract<ErrorLocation, { kind: "lake" }>): string =>
  routes.lake(prefix, { ...(file ? { file } : {}), ...(line === undefined ? {} : { line }) });

/** Buttons for the remedy. */
function Steps({
  slug,
  job,
  steps,
  place,
}: {
  slug: string;
  job: Job;
  steps: Step[];
  place: ErrorLocation | undefined;
}) {
  const { busy, retry } = useJobActions(slug, job);
  const { run, busy: running } = useRun(slug);
  const [cleaning, setCleaning] = useState(false);
  const pointer = place?.kind === "config" ? place.pointer : undefined;
  const { data: status } = useQuery({ ...statusQuery(slug), enabled: steps.includes("adapt") });
  const misread = (status?.tables ?? []).filter(
    (table) => (table.pending.count > 0 || table.state === "changed") && isAbout(job.error?.message, table),
  );
  const buttons: Record<Step, ComponentChildren> = {
    adapt: misread.map(({ name, pending }) => (
      <StateButton
        key={name}
        slug={slug}
        first
        action={{ kind: "adapt", table: name, files: pending.first, job: job.job_id, words: `Fix ${name}…` }}
      />
    )),
    config: (
      <Link key="config" class="button" href={`~${routes.config(slug, pointer)}`}>
        Open config
      </Link>
    ),
    place: place?.kind === "lake" && (
      <Link key="place" class="button" href={`~${lakeRoute(place)}`}>
        Open in lake
      </Link>
    ),
    propose: (
      <Link key="propose" class="button" href={`~${routes.fromCsv()}`}>
        New config from CSV
      </Link>
    ),
    retry: (
      // Not where it fails again unless something is changed first.
      <Button
        key="retry"
        variant={steps[0] === "retry" ? "plain" : "quiet"}
        busy={busy === "retry"}
        onClick={() => void retry()}
      >
        Retry
      </Button>
    ),
    "new-run": (
      <Button key="new-run" icon={<Play />} busy={running} onClick={() => void run(false)}>
        Run
      </Button>
    ),
    clean: (
      <Button key="clean" onClick={() => setCleaning(true)}>
        Clean run…
      </Button>
    ),
    // They are shown below.
    rejects: null,
  };
  return (
    <div class="row wrap">
      {steps.map((step) => buttons[step])}
      {cleaning && (
        <CleanRun
          slug={slug}
          onClose={() => setCleaning(false)}
          onConfirm={() => {
            setCleaning(false);
            void run(true);
          }}
        />
      )}
    </div>
  );
}

/** Failure of a run: cause, location, remedy. */
export function JobFailure({ slug, job, error }: { slug: string; job: Job; error: RunError }) {
  const remedy = remedyOfRun(error);
  const place = locationOf(slug, error);
  const message = <MessageText text={sentence(failureWords(error.message))} />;
  return (
    <section class={error.code === "cancelled" ? "job-failure calm" : "job-failure"} aria-label="Failure">
      <h3>{remedy.title ?? message}</h3>
      {remedy.title !== undefined && <p>{message}</p>}
      {place && (
        <p>
          Location: <LocationLink slug={slug} place={place} />
        </p>
      )}
      <p>
        <MessageText text={remedy.text} />
      </p>
      <Steps slug={slug} job={job} steps={remedy.steps} place={place} />
      {error.code === "too_many_rejects" && <JobRejects slug={slug} id={job.job_id} />}
      <p class="dim">
        Code <code>{error.code}</code>
      </p>
      {error.detail && (
        // Written for those who edit the config; the files of others can be fixed without.
        <details open={!isMisread(error.code)}>
          <summary>Technical details</summary>
          <p class="job-failure-detail">
            <MessageText text={error.detail} />
          </p>
        </details>
      )}
    </section>
  );
}
