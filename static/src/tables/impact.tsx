/** What a change of the config breaks. */
import { Link } from "wouter-preact";
import type { ConfigSaved } from "../api/types";
import { routes } from "../browser/routes";
import { Note } from "../components/states";

/** Number of dashboards and saved queries that break. */
export function broken(verdict: ConfigSaved | undefined): number {
  const impact = verdict?.impact;
  return impact ? new Set(impact.dashboards.map((one) => one.name)).size + impact.queries.length : 0;
}

/** Dashboards and saved queries that break. */
export function ImpactList({ slug, verdict }: { slug: string; verdict: ConfigSaved | undefined }) {
  if (!verdict) return <p class="secondary">Shown after validation.</p>;
  const { impact } = verdict;
  if (!impact)
    return <p class="secondary">Unknown: {verdict.impact_unknown ?? "couldn't read the dashboards and queries"}.</p>;
  if (broken(verdict) === 0) return <p class="secondary">No dashboards or saved queries break.</p>;
  return (
    <Note tone="warn">
      <ul class="config-impact">
        {impact.dashboards.map(({ name, query, message, draft }) => (
          <li key={`${name} ${query} ${message}`}>
            Dashboard <Link href={`~${routes.editDashboard(slug, name)}`}>{name}</Link>
            {draft ? " (draft)" : ""}, query <code>{query}</code>: {message}
          </li>
        ))}
        {impact.queries.map(({ id, name, message }) => (
          <li key={id}>
            Saved query <Link href={`~${routes.query(slug, { saved: id })}`}>{name}</Link>: {message}
          </li>
        ))}
      </ul>
    </Note>
  );
}
