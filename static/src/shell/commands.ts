/** Entries of the command palette: pages, and actions by ID. */
import type { PipelineDetail, SavedQuery, Table } from "../api/types";
import type { Titled } from "../boards/titles";
import { routes } from "../browser/routes";
import { byText, titleOfPipeline } from "../api/titles";
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
  dashboards: Titled[];
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

/** `of`: the pipeline's title. */
function views(slug: string, of: string): Command[] {
  const kind = `view of ${of}`;
  return [
    go(`${slug} data`, "Data", kind, routes.data(slug), `tables rows ${slug}`),
    go(`${slug} query`, "Query", kind, routes.query(slug), `sql ${slug}`),
    go(`${slug} dashboards`, "Dashboards", kind, routes.dashboards(slug), slug),
    go(`${slug} jobs`, "Jobs", kind, routes.jobs(slug), `runs ${slug}`),
    go(`${slug} config`, "Config", kind, routes.config(slug), slug),
  ];
}

function inside({ slug, tables, dashboards, queries }: PipelineContents, of: string): Command[] {
  return [
    ...tables.map(({ name }) => go(`${slug} table ${name}`, name, `table of ${of}`, routes.data(slug, name), slug)),
    ...dashboards.map(({ name, title, published }) =>
      go(
        `${slug} dashboard ${name}`,
        title,
        `dashboard of ${of}`,
        published ? routes.dashboard(slug, name) : routes.editDashboard(slug, name),
        `${slug} ${name}`,
      ),
    ),
    ...queries
      .toSorted((a, b) => byText(a.name, b.name))
      .map(({ id, name }) =>
        go(`${slug} saved ${id}`, name, `saved query of ${of}`, routes.query(slug, { saved: id }), slug),
      ),
  ];
}

/** All entries; `here` is the open pipeline. */
export function commands(pipelines: PipelineDetail[], known: PipelineContents[], here: string | undefined): Command[] {
  const titles = new Map(pipelines.map((one) => [one.slug, titleOfPipeline(one)]));
  const titleOf = (slug: string) => titles.get(slug) ?? slug;
  const own = here
    ? [
        // Not first: an Enter too many must start nothing.
        ...views(here, titleOf(here)),
        act("upload", "Upload CSVs", `to ${titleOf(here)}`, "lake add files"),
        act("run", "Run", `of ${titleOf(here)}`, "start"),
        act("clean", "Clean run…", `of ${titleOf(here)}`, "start again rebuild"),
      ]
    : [];
  return [
    ...own,
    ...known.flatMap((one) => inside(one, titleOf(one.slug))),
    ...pipelines.map(({ slug, title }) =>
      go(slug, title || slug, title ? `pipeline ${slug}` : "pipeline", routes.pipeline(slug)),
    ),
    go("home", "Pipelines", "place", routes.home(), "home all"),
    go("lake", "Lake", "place", routes.lake(), "files objects"),
    go("jobs", "Jobs of all pipelines", "place", routes.allJobs(), "runs failed active"),
    ...(here ? [] : [act("upload", "Upload CSVs", "to a pipeline", "lake add files")]),
    go("new", "New pipeline from CSV", "action", routes.fromCsv(), "create drop"),
    go("settings", "Settings", "place", routes.settings(), "workspace about theme session"),
    act("theme", "Change theme", "action", "light dark system toggle"),
    act("help", "Help for this view", "action", "keyboard shortcuts"),
    act("logout", "Log out", "action", "session leave"),
    ...pipelines.filter(({ slug }) => slug !== here).flatMap(({ slug }) => views(slug, titleOf(slug))),
  ];
}

/** Pipelines that the input may refer to, besides the open one; their contents are loaded. */
export function referredPipelines(slugs: string[], here: string | undefined, wanted: string[], max: number): string[] {
  return [...new Set([...(here ? [here] : []), ...wanted, ...slugs])].slice(0, max);
}
