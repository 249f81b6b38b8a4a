import { useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { pausesQuery } from "../../api/pauses";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { Failed } from "../../components/states";
import { Time } from "../../components/time";
import { routes } from "../../browser/routes";
import { PauseDialog, PauseNotice } from "../../shell/pause";

/** Pause of all pipelines, and those that are paused by themselves. */
export function PausePart() {
  const { data, error, refetch } = useQuery(pausesQuery());
  const [asking, setAsking] = useState(false);
  const paused = data?.pipelines ?? [];
  return (
    <Section title="Runs">
      {error && !data ? (
        <Failed title="Couldn't load the pauses" error={error} onRetry={() => void refetch()} />
      ) : data?.all ? (
        <PauseNotice />
      ) : (
        <div class="card settings-session">
          <p class="grow">Pause all pipelines, for example while the store is moved. New files and runs wait.</p>
          <Button onClick={() => setAsking(true)}>Pause all…</Button>
        </div>
      )}
      {paused.length > 0 && (
        <ul class="stack" aria-label="Paused pipelines">
          {paused.map(({ pipeline, since, reason }) => (
            <li key={pipeline} class="in-text">
              <Link href={routes.pipeline(pipeline)}>{pipeline}</Link>, paused <Time at={since} />
              {reason && `: ${reason}`}
            </li>
          ))}
        </ul>
      )}
      {asking && <PauseDialog onClose={() => setAsking(false)} />}
    </Section>
  );
}
