import { useQuery } from "@tanstack/preact-query";
import { Maximize, Pencil, RefreshCw } from "lucide-preact";
import { Link } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { dashboardsQuery } from "../../api/queries";
import { IconButton } from "../../components/button";
import { Page } from "../../components/page";
import { Empty, Failed, Note, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { routes } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { dataOf, staleness } from "../../runs/table-state";
import { useKnownStatus } from "../../shell/state-notice";
import { Board, useData } from "./board";
import { type DashboardDoc, isReadable } from "./document";
import { documentQuery } from "./queries";
import "./view.css";

function EditLink({ slug, name, primary }: { slug: string; name: string; primary?: boolean }) {
  return (
    <Link
      href={`~${routes.editDashboard(slug, name)}`}
      class={`button dash-edit-link ${primary ? "primary" : "plain"}`}
    >
      <Pencil />
      <span>Edit</span>
    </Link>
  );
}

export function View({ slug, name }: { slug: string; name: string }) {
  const { data, error, isPending, refetch } = useQuery(documentQuery(slug, name));
  const { data: listed } = useQuery(dashboardsQuery(slug));
  const hasDraft = listed?.dashboards.some((one) => one.name === name && one.draft) ?? false;
  if (isPending) {
    return (
      <Page title={`${name} · ${slug}`} heading={name}>
        <Skeleton lines={8} />
      </Page>
    );
  }
  if (!data) {
    const missing = asFailure(error).code === "dashboard_not_found";
    return (
      <Page title={`${name} · ${slug}`} heading={name}>
        {missing && hasDraft ? (
          <Empty title="Not published yet" actions={<EditLink slug={slug} name={name} primary />}>
            Publish the draft to see the dashboard here.
          </Empty>
        ) : (
          <Failed
            title={missing ? "Dashboard not found" : "Couldn't load the dashboard"}
            error={error}
            onRetry={missing ? undefined : () => void refetch()}
            actions={
              <Link class="button" href={`~${routes.dashboards(slug)}`}>
                All dashboards
              </Link>
            }
          />
        )}
      </Page>
    );
  }
  if (!isReadable(data.read)) {
    return (
      <Page title={`${name} · ${slug}`} heading={name}>
        <Empty title="Couldn't read the dashboard" actions={<EditLink slug={slug} name={name} primary />}>
          Line {data.read.line}: {data.read.message}
        </Empty>
      </Page>
    );
  }
  return <Published slug={slug} name={name} etag={data.etag} document={data.read} hasDraft={hasDraft} />;
}

interface PublishedProps {
  slug: string;
  name: string;
  etag: string | null;
  document: DashboardDoc;
  hasDraft: boolean;
}

function Published({ slug, name, etag, document, hasDraft }: PublishedProps) {
  const loaded = useData({ slug, name, draft: false, etag, document });
  const { data } = loaded;
  const status = useKnownStatus(slug);
  const stale = status && staleness(status, [...document.queries.values()].join("\n"));
  const refresh = () => void data.refetch();
  const present = () => {
    const { fullscreenElement } = globalThis.document;
    void (fullscreenElement
      ? globalThis.document.exitFullscreen()
      : globalThis.document.querySelector(".dash-board")?.requestFullscreen());
  };
  useShortcuts([
    { keys: "r", does: "Refresh panels", run: refresh },
    { keys: "f", does: "Full screen", run: present },
  ]);
  return (
    <Page
      title={`${document.title || name} · ${slug}`}
      heading={document.title || name}
      actions={
        <>
          {!stale && status?.succeeded && (
            <span class="dim dash-updated">{data.isFetching ? "Loading…" : dataOf(status.succeeded)}</span>
          )}
          {hasDraft && (
            <Badge tone="warn" title="Has unpublished changes">
              draft
            </Badge>
          )}
          <IconButton label="Full screen" icon={<Maximize />} onClick={present} />
          <IconButton label="Refresh" icon={<RefreshCw />} busy={data.isFetching} onClick={refresh} />
          <EditLink slug={slug} name={name} />
        </>
      }
    >
      {stale && (
        <Note tone={stale.tone}>
          <p>
            {stale.sentence} ·{" "}
            <Link href={`~${stale.job ? routes.job(slug, stale.job) : routes.data(slug, stale.table)}`}>See why</Link>
          </p>
        </Note>
      )}
      {document.description && <p class="secondary">{document.description}</p>}
      <Board slug={slug} document={document} loaded={loaded} />
    </Page>
  );
}
