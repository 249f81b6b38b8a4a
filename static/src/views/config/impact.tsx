import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { statusQuery } from "../../api/queries";
import type { ConfigSaved } from "../../api/types";
import { Note } from "../../components/states";
import { counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { unreadable } from "../../runs/table-state";
import { nextRun, outlookText, type Outlook } from "./outlook";

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

/** Effect on the next run of the edited config, of what is saved already, and of the files in the lake. */
export function OutlookList({ slug, edited }: { slug: string; edited: Outlook[] }) {
  const { data: status } = useQuery(statusQuery(slug));
  const outlooks = status ? nextRun(edited, status) : edited;
  if (outlooks.length === 0 && status?.config.state === "invalid")
    return (
      <p class="secondary">
        {unreadable(status.config) && `${unreadable(status.config)}. `}Runs fail until the problems of the saved config
        are fixed.
      </p>
    );
  if (outlooks.length === 0)
    return <p class="secondary">{status?.complete ? "No tables change." : "No tables change by this edit."}</p>;
  const rebuilt = outlooks.filter(({ change }) => change === "rebuilt" || change === "shape").length;
  return (
    <>
      {rebuilt > 1 && <p class="secondary">{counted(rebuilt, "table")} will be rebuilt.</p>}
      <ul class="config-outlook">
        {outlooks.map((one) => (
          <li key={one.table}>
            <code>{one.table}</code> {outlookText(one)}
          </li>
        ))}
      </ul>
    </>
  );
}
