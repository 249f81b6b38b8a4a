import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { EllipsisVertical, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { dashboardsQuery, keys } from "../../api/queries";
import type { DashboardEntry, DashboardProblem } from "../../api/types";
import { BrokenBadge, BrokenReason, useDashboardProblems } from "../../boards/broken";
import { type Titled, useTitled } from "../../boards/titles";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { Menu } from "../../components/menu";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { Time } from "../../components/time";
import { toast } from "../../components/toasts";
import { routes } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { NewDashboard } from "./new";
import { RepairAll } from "./repair-all";
import { remove } from "../../api/dashboards";
import "./view.css";

function States({ entry }: { entry: DashboardEntry }) {
  if (entry.published && entry.draft)
    return (
      <span class="row">
        <Badge tone="ok">published</Badge>
        <Badge tone="warn" title="Has unpublished changes">
          changed
        </Badge>
      </span>
    );
  return entry.published ? <Badge tone="ok">published</Badge> : <Badge>draft</Badge>;
}

export function DeleteDashboard({
  slug,
  entry,
  onClose,
  onDone,
}: {
  slug: string;
  entry: DashboardEntry & { title?: string };
  onClose: () => void;
  onDone: () => void;
}) {
  const cache = useQueryClient();
  const [busy, setBusy] = useState(false);
  const title = entry.title ?? entry.name;
  const confirm = async () => {
    setBusy(true);
    try {
      await remove(slug, entry.name);
      await cache.invalidateQueries({ queryKey: keys.dashboards(slug) });
      toast.done(`Deleted ${title}`);
      onDone();
    } catch (error) {
      toast.failed("Couldn't delete the dashboard", error);
      setBusy(false);
    }
  };
  const lost = [entry.published ? "the published version" : "", entry.draft ? "the draft" : ""]
    .filter(Boolean)
    .join(" and ");
  return (
    <Confirm
      title={`Delete the dashboard ${title}`}
      action="Delete"
      danger
      busy={busy}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      <p>
        This deletes {lost} of <strong>{title}</strong> in the pipeline {slug} for everyone. Tables aren't affected.
        This can't be undone.
      </p>
    </Confirm>
  );
}

interface RowProps {
  slug: string;
  entry: Titled;
  problems: DashboardProblem[];
  onDelete: () => void;
}

function Row({ slug, entry, problems, onDelete }: RowProps) {
  const [, go] = useLocation();
  const edit = routes.editDashboard(slug, entry.name);
  return (
    <tr>
      <td>
        <Link href={`~${entry.published ? routes.dashboard(slug, entry.name) : edit}`}>{entry.title}</Link>
        {entry.title !== entry.name && <code class="dim dash-slug">{entry.name}</code>}
      </td>
      <td>
        <span class="row wrap">
          <States entry={entry} />
          <BrokenBadge problems={problems} />
        </span>
        <BrokenReason slug={slug} name={entry.name} problems={problems} />
      </td>
      <td>
        <Time at={entry.modified} />
      </td>
      <td class="num">
        <Menu
          label={`More actions for ${entry.title}`}
          button={<EllipsisVertical />}
          class="icon-only"
          items={[
            { label: "Edit", onSelect: () => go(`~${edit}`) },
            { label: "Delete…", danger: true, onSelect: onDelete },
          ]}
        />
      </td>
    </tr>
  );
}

/** The dashboards that have problems, with these. */
const brokenOf = (dashboards: DashboardEntry[], problemsOf: (name: string) => DashboardProblem[]): DashboardEntry[] =>
  dashboards.flatMap((entry) => {
    const problems = problemsOf(entry.name);
    return problems.length > 0 ? [{ ...entry, problems }] : [];
  });

export function List({ slug }: { slug: string }) {
  const { data, error, isPending, refetch } = useQuery(dashboardsQuery(slug));
  const broken = useDashboardProblems(slug);
  const titled = useTitled(slug, data?.dashboards);
  const [dialog, setDialog] = useState<"new" | Titled>();
  const close = () => setDialog(undefined);
  useShortcuts([{ keys: "n", does: "Create dashboard", run: () => setDialog("new") }]);
  const create = (
    <Button variant="primary" icon={<Plus />} onClick={() => setDialog("new")}>
      New dashboard
    </Button>
  );
  return (
    <Page title={`Dashboards · ${slug}`} heading="Dashboards" actions={data && data.dashboards.length > 0 && create}>
      {isPending && <Skeleton lines={4} />}
      {error && !data && <Failed title="Couldn't load the dashboards" error={error} onRetry={() => void refetch()} />}
      {data?.dashboards.length === 0 && (
        <Empty title="No dashboards yet" actions={create}>
          A dashboard shows query results as numbers, charts and tables. Start from a table to generate a draft, then
          edit and publish it.
        </Empty>
      )}
      {data && <RepairAll slug={slug} broken={brokenOf(data.dashboards, broken)} />}
      {data && data.dashboards.length > 0 && (
        <div class="table-box dash-list">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Title</th>
                <th scope="col">Status</th>
                <th scope="col">Modified</th>
                <th scope="col">
                  <span class="for-readers">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {titled.map((entry) => (
                <Row
                  key={entry.name}
                  slug={slug}
                  entry={entry}
                  problems={broken(entry.name)}
                  onDelete={() => setDialog(entry)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {dialog === "new" && (
        <NewDashboard slug={slug} taken={data?.dashboards.map(({ name }) => name) ?? []} onClose={close} />
      )}
      {dialog && dialog !== "new" && <DeleteDashboard slug={slug} entry={dialog} onClose={close} onDone={close} />}
    </Page>
  );
}
