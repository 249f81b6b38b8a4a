import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { checkedDashboardsQuery, renamesQuery } from "../api/queries";
import type { DashboardProblem } from "../api/types";
import { REPAIR, routes } from "../browser/routes";
import { MessageText } from "../components/message-text";
import { Badge } from "../components/status";
import { counted } from "../format/number";
import { plainProblem, repairOf } from "./repair";
import { type Titled, useTitled } from "./titles";

/** Problems of a dashboard with the current tables; none until they are known. */
export function useDashboardProblems(slug: string): (name: string) => DashboardProblem[] {
  const { data } = useQuery(checkedDashboardsQuery(slug));
  return (name) => data?.dashboards.find((one) => one.name === name)?.problems ?? [];
}

/** Published dashboards that can't be shown with the current tables; undefined until they are known. */
export function useBrokenPublished(slug: string, enabled = true): Titled[] | undefined {
  const { data } = useQuery({ ...checkedDashboardsQuery(slug), enabled });
  const broken = data?.dashboards.filter(({ published, problems }) => published && (problems?.length ?? 0) > 0);
  const titled = useTitled(slug, broken);
  return broken && titled;
}

export function BrokenBadge({ problems }: { problems: DashboardProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <Badge tone="bad" title={problems.map(({ message }) => plainProblem(message)).join("\n")}>
      broken
    </Badge>
  );
}

/** Why a dashboard can't be shown, and how to repair it. */
export function BrokenReason({ slug, name, problems }: { slug: string; name: string; problems: DashboardProblem[] }) {
  const [first] = problems;
  const { data: renames } = useQuery({ ...renamesQuery(slug), enabled: first !== undefined });
  if (!first) return null;
  const repair = repairOf(first.message, renames);
  return (
    <p class="secondary">
      <MessageText text={plainProblem(first.message)} />
      {problems.length > 1 && ` and ${counted(problems.length - 1, "more problem")}`}.{" "}
      {repair !== undefined && <MessageText text={`${repair} `} />}
      <Link href={`~${routes.editDashboard(slug, name)}`} state={REPAIR}>
        Fix dashboard
      </Link>
    </p>
  );
}
