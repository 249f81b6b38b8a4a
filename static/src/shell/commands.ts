/** Entries of the command palette: pages, and actions by ID. */
import type { DashboardEntry, PipelineDetail, SavedQuery, Table } from "../api/types";
import { routes } from "../browser/routes";
import type { Searchable } from "./rank";

export type Action = "run" | "clean" | "upload" | "theme" | "logout" | "help";

export interface Command extends Searchable {
  /** Description: `table of flights`. */
  kind: string;
  does: { go: string } | { act: Action };
}

/** Contents of one pipeline. */
export interface PipelineContents {
  slug: string;
  tables: Table[];
  dashboards: DashboardEntry[];
  queries: SavedQuery[];
}

const go = (id: string, label: string, kind: string, to: string, also = ""): Command => ({
  id,
  label,
  kind,
  also: `${kind} ${also}`,
  does: { go: to },
});

const act = (action: Action, label: string, kind: string, also = ""): Command => ({
  id: `do ${action}`,
  label,
  kind,
  also: `${kind} ${also}`,
  does: { act: action },
});

function views(slug: string): Command[] {
  const of = `view of ${slug}`;
  return [
    go(`${slug} data`, "Data", of, routes.data(slug), "tables rows"),
    go(`${slug} query`, "Query", of, routes.query(slug), "sql"),
    go(`${slug} dashboards`, "Dashboards", of, routes.dashboards(slug)),
    go(`${slug} jobs`, "Jobs", of, routes.jobs(slug), "runs"),
    go(`${slug} config`, "Config", of, routes.config(slug)),
  ];
}

function inside({ slug, tables, dashboards, queries }: PipelineContents): Command[] {
  return [
    ...tables.map(({ name }) => go(`${slug} table ${name}`, name, `table of ${slug}`, routes.data(slug, name))),
    ...dashboards.map(({ name }) =>
      go(`${slug} dashboard ${name}`, name, `dashboard of ${slug}`, routes.dashboard(slug, name)),
    ),
    ...queries.map(({ id, name }) =>
      go(`${slug} saved ${id}`, name, `saved query of ${slug}`, routes.query(slug, { saved: id })),
    ),
  ];
}

/** All entries; `here` is the open pipeline. */
export function commands(pipelines: PipelineDetail[], known: PipelineContents[], here: string | undefined): Command[] {
  const own = here
    ? [
        // Not first: an Enter too many must start nothing.
        ...views(here),
        act("upload", "Upload CSVs", `to ${here}`, "lake add files"),
        act("run", "Run", `of ${here}`, "start"),
        act("clean", "Clean run…", `of ${here}`, "start again rebuild"),
      ]
    : [];
  return [
    ...own,
    ...known.flatMap(inside),
    ...pipelines.map(({ slug, title }) => go(slug, slug, title ?? "pipeline", routes.pipeline(slug), "pipeline")),
    go("home", "Pipelines", "place", routes.home(), "home all"),
    go("lake", "Lake", "place", routes.lake(), "files objects"),
    go("jobs", "Jobs of all pipelines", "place", routes.allJobs(), "runs failed active"),
    ...(here ? [] : [act("upload", "Upload CSVs", "to a pipeline", "lake add files")]),
    go("new", "New pipeline from CSV", "action", routes.fromCsv(), "create drop"),
    go("settings", "Settings", "place", routes.settings(), "workspace about theme session"),
    act("theme", "Change theme", "action", "light dark system toggle"),
    act("help", "Help for this view", "action", "keyboard shortcuts"),
    act("logout", "Log out", "action", "session leave"),
    ...pipelines.filter(({ slug }) => slug !== here).flatMap(({ slug }) => views(slug)),
  ];
}

/** Pipelines that the input may refer to, besides the open one; their contents are loaded. */
export function referredPipelines(slugs: string[], here: string | undefined, wanted: string[], max: number): string[] {
  return [...new Set([...(here ? [here] : []), ...wanted, ...slugs])].slice(0, max);
}
