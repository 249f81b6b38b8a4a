import { useQuery } from "@tanstack/preact-query";
import { LayoutDashboard } from "lucide-preact";
import { Link } from "wouter-preact";
import { dashboardsQuery } from "../../api/queries";
import { BrokenBadge, BrokenReason, useDashboardProblems } from "../../boards/broken";
import { useTitled } from "../../boards/titles";
import { Section } from "../../components/page";
import { Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { Time } from "../../components/time";
import { routes } from "../../browser/routes";

/** Links to dashboards; unpublished ones open in the editor. */
export function Dashboards({ slug, ran }: { slug: string; ran: boolean }) {
  const { data, isPending } = useQuery(dashboardsQuery(slug));
  const broken = useDashboardProblems(slug);
  const titled = useTitled(slug, data?.dashboards);
  if (isPending && ran)
    return (
      <Section title="Dashboards">
        <Skeleton lines={1} label="Loading the dashboards" />
      </Section>
    );
  if (!data || (data.dashboards.length === 0 && !ran)) return null;
  const none = data.dashboards.length === 0;
  const all = <Link href={`~${routes.dashboards(slug)}`}>{none ? "Create dashboard" : "All dashboards"}</Link>;
  return (
    <Section title="Dashboards" actions={all}>
      {none && <p class="secondary">No dashboards yet. Create one from a table.</p>}
      <ul class="overview-dashboards">
        {titled.map(({ name, title, published, draft, modified }) => (
          <li key={name} class="card">
            <Link
              class="row wrap"
              href={`~${published ? routes.dashboard(slug, name) : routes.editDashboard(slug, name)}`}
            >
              <LayoutDashboard aria-hidden="true" />
              <span class="overview-title" title={name}>
                {title}
              </span>
              {!published && <Badge>draft</Badge>}
              {published && draft && (
                <Badge tone="warn" title="Has unpublished changes">
                  changed
                </Badge>
              )}
              <BrokenBadge problems={broken(name)} />
              <span class="secondary overview-when">
                <Time at={modified} />
              </span>
            </Link>
            <BrokenReason slug={slug} name={name} problems={broken(name)} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
