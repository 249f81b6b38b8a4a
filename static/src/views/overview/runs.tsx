import { Link } from "wouter-preact";
import { isActive } from "../../api/queries";
import type { Job } from "../../api/types";
import { MessageText } from "../../components/message-text";
import { Section } from "../../components/page";
import { JobBadge } from "../../components/status";
import { Time } from "../../components/time";
import { duration } from "../../format/time";
import { routes } from "../../browser/routes";
import { ActiveText } from "../../runs/progress";
import { markOfJob, Sparkline } from "../../runs/sparkline";
import { shortOutcome } from "../../runs/text";

const SHOWN = 6;

/** The last runs with duration and outcome. */
export function Runs({ slug, jobs }: { slug: string; jobs: Job[] }) {
  const ended = jobs.filter((job) => !isActive(job));
  return (
    <Section title="Last runs" actions={<Link href={`~${routes.jobs(slug)}`}>All jobs</Link>}>
      <div class="card overview-runs">
        <Sparkline wide marks={ended.map(markOfJob).reverse()} />
        <ul>
          {jobs.slice(0, SHOWN).map((job) => (
            <li key={job.job_id}>
              <Link href={`~${routes.job(slug, job.job_id)}`}>
                <JobBadge status={job.status} code={job.error?.code} />
                <span class="secondary overview-when">
                  <Time at={job.finished_at ?? job.enqueued_at} />
                </span>
                <span class="grow cut secondary" title={isActive(job) ? undefined : shortOutcome(job)}>
                  {isActive(job) ? <ActiveText job={job} /> : <MessageText text={shortOutcome(job)} />}
                </span>
                <span class="num">{typeof job.duration_ms === "number" ? duration(job.duration_ms) : ""}</span>
              </Link>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}
