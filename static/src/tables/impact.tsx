/** What a change of the config breaks. */
import { keepPreviousData, useQueries, useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { checkConfig } from "../api/config";
import { textOf } from "../api/dashboards";
import { titleOfText } from "../api/titles";
import type { ConfigProblem, ConfigSaved } from "../api/types";
import { routes } from "../browser/routes";
import { MessageText } from "../components/message-text";
import { Note } from "../components/states";
import { brokenBy } from "../boards/repair";

/** Number of dashboards and saved queries that break. */
export function broken(verdict: ConfigSaved | undefined): number {
  const impact = verdict?.impact;
  return impact ? new Set(impact.dashboards.map((one) => one.name)).size + impact.queries.length : 0;
}

/** Validates an edited config; the previous verdict is shown while loading. */
export const useConfigCheck = (slug: string, text: string, enabled = true) =>
  useQuery({
    queryKey: ["column", slug, "check", text],
    queryFn: ({ signal }) => checkConfig(slug, text, signal),
    enabled,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
    retry: false,
    refetchOnWindowFocus: false,
  });

/** Problems of an edited config. */
export const ConfigProblems = ({ problems }: { problems: readonly ConfigProblem[] }) =>
  problems.map(({ path, message }) => (
    <Note key={`${path} ${message}`} tone="bad">
      <MessageText text={message} /> <code>{path}</code>
    </Note>
  ));

/** Titles of a dashboard and of its charts by their queries. */
interface Titles {
  title: string | undefined;
  charts: ReadonlyMap<unknown, unknown>;
}

async function titlesOf(slug: string, name: string, draft: boolean, signal: AbortSignal): Promise<Titles> {
  const [{ text }, { parsed, valueOf }] = await Promise.all([
    textOf(slug, name, draft, signal),
    import("../boards/yaml"),
  ]);
  const { panels = [] } = valueOf(parsed(text)) as { panels?: { query?: unknown; title?: unknown }[] };
  return { title: titleOfText(text), charts: new Map(panels.map(({ query, title }) => [query, title])) };
}

/** Why it breaks, in plain words where the service's message has known ones. */
function Why({ message }: { message: string }) {
  const words = brokenBy(message);
  return words === undefined ? (
    <>
      it would fail. <small>{message}</small>
    </>
  ) : (
    <MessageText text={words} />
  );
}

/** Dashboards and saved queries that break. */
export function ImpactList({ slug, verdict }: { slug: string; verdict: ConfigSaved | undefined }) {
  const listed = verdict?.impact?.dashboards ?? [];
  const asked = listed.filter(({ name }, at) => listed.findIndex((one) => one.name === name) === at);
  const titles = useQueries({
    queries: asked.map(({ name, draft }) => ({
      queryKey: ["impact", slug, name, draft],
      queryFn: ({ signal }: { signal: AbortSignal }) => titlesOf(slug, name, draft, signal),
      retry: false,
    })),
  });
  if (!verdict) return <p class="secondary">Shown after validation.</p>;
  const { impact } = verdict;
  if (!impact)
    return <p class="secondary">Unknown: {verdict.impact_unknown ?? "couldn't read the dashboards and queries"}.</p>;
  if (broken(verdict) === 0) return <p class="secondary">No dashboards or saved queries break.</p>;
  return (
    <Note tone="warn">
      <ul class="config-impact">
        {impact.dashboards.map(({ name, query, message, draft }) => {
          const known = titles[asked.findIndex((one) => one.name === name)]?.data;
          const chart = known?.charts.get(query);
          return (
            <li key={`${name} ${query} ${message}`}>
              Dashboard <Link href={`~${routes.editDashboard(slug, name)}`}>{known?.title ?? name}</Link>
              {draft ? " (draft)" : ""},{" "}
              {typeof chart === "string" ? (
                `chart ${chart}`
              ) : (
                <>
                  query <code>{query}</code>
                </>
              )}
              : <Why message={message} />
            </li>
          );
        })}
        {impact.queries.map(({ id, name, message }) => (
          <li key={id}>
            Saved query <Link href={`~${routes.query(slug, { saved: id })}`}>{name}</Link>: <Why message={message} />
          </li>
        ))}
      </ul>
    </Note>
  );
}
