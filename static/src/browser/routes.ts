/** URLs of the UI; `src/web/ui.rs` lists their prefixes. */
const part = encodeURIComponent;

function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") params.set(name, String(value));
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

export const routes = {
  home: () => "/",
  /** The wizard for a new pipeline or a new table of one, optionally from a CSV in the lake. */
  fromCsv: (query: { key?: string; pipeline?: string } = {}) => withQuery("/new", query),
  lake: (prefix?: string, more: { file?: string; line?: number } = {}): string =>
    withQuery("/lake", { prefix, ...more }),
  /** A file in its folder of the lake, at a line. */
  file: (key: string, line?: number | null): string =>
    routes.lake(key.slice(0, key.lastIndexOf("/") + 1), { file: key, ...(line ? { line } : {}) }),
  /** A source in the lake; source keys are relative to their pipeline. */
  source: (slug: string, source: string, line?: number | null): string =>
    routes.file(`pipelines/${slug}/${source}`, line),
  /** Jobs of all pipelines; `status` as in the API. */
  allJobs: (status?: string) => withQuery("/jobs", { status }),
  settings: () => "/settings",
  pipeline: (slug: string) => `/p/${part(slug)}`,
  data: (
    slug: string,
    table?: string,
    query: { tab?: string; source?: string | undefined; reason?: string; chart?: number; row?: number } = {},
  ) => withQuery(table ? `/p/${part(slug)}/data/${part(table)}` : `/p/${part(slug)}/data`, query),
  query: (slug: string, query: { sql?: string; saved?: string } = {}) => withQuery(`/p/${part(slug)}/query`, query),
  dashboards: (slug: string) => `/p/${part(slug)}/dashboards`,
  dashboard: (slug: string, name: string) => `/p/${part(slug)}/dashboards/${part(name)}`,
  editDashboard: (slug: string, name: string) => `/p/${part(slug)}/dashboards/${part(name)}/edit`,
  jobs: (slug: string) => `/p/${part(slug)}/jobs`,
  job: (slug: string, id: string) => `/p/${part(slug)}/jobs/${part(id)}`,
  /** `at`: JSON Pointer to select. */
  config: (slug: string, at?: string) => withQuery(`/p/${part(slug)}/config`, { at }),
};

/** Navigation state that runs the query of the URL at once. Links from other sites can't set it. */
export const RUN_IMMEDIATELY = { run: true } as const;

/** Navigation state of a file that is opened from its list, which is the history entry before it. */
export const FROM_LIST = { listed: true } as const;

/** A member of the last navigation's state. */
function stateOf(name: "run" | "listed" | "from" | "added" | "repair"): unknown {
  const state: unknown = history.state;
  return typeof state === "object" && state !== null ? (state as Record<string, unknown>)[name] : undefined;
}

/** Whether the last navigation asked to run at once. */
export const runsImmediately = (): boolean => stateOf("run") === true;

/** Whether the last navigation opened a file from its list. */
export const isFromList = (): boolean => stateOf("listed") === true;

/** Navigation state that creates the dashboard of the URL from a table. */
export const startFrom = (table: string) => ({ from: table });

/** Navigation state that marks a panel that was just added. */
export const added = (panel: string) => ({ added: panel });

/** Navigation state that applies the proposed repairs of the dashboard of the URL. */
export const REPAIR = { repair: "proposed" } as const;

/** Reads a text of the last navigation's state, and removes the state. */
function take(name: "from" | "added" | "repair"): string | undefined {
  const value = stateOf(name);
  if (typeof value !== "string") return undefined;
  history.replaceState(null, "");
  return value;
}

/** The table to create the dashboard of the URL from, if the last navigation asked for it. Asks once. */
export const takeStart = (): string | undefined => take("from");

/** The panel that was just added. Asks once. */
export const takeAdded = (): string | undefined => take("added");

/** Whether the last navigation asked for the proposed repairs. Asks once. */
export const takeRepair = (): boolean => take("repair") !== undefined;
