/** Titles of dashboards, which the service's list doesn't have. */
import { useQueries } from "@tanstack/preact-query";
import { textOf } from "../api/dashboards";
import type { DashboardEntry } from "../api/types";
import { byText, titleOfText } from "../api/titles";

/** Dashboards of a pipeline whose titles are loaded; the others are listed by name. */
const TITLES_MAX = 50;

const titleQuery = (slug: string, { name, published, modified }: DashboardEntry) => ({
  queryKey: ["p", slug, "titles", name, modified],
  queryFn: async ({ signal }: { signal: AbortSignal }) =>
    titleOfText((await textOf(slug, name, !published, signal)).text) ?? name,
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});

export interface Titled extends DashboardEntry {
  title: string;
}

/** Dashboards of pipelines with their titles, sorted by these; names until they are loaded. */
export function useTitles(lists: readonly { slug: string; dashboards: readonly DashboardEntry[] }[]): Titled[][] {
  const asked = lists.flatMap(({ slug, dashboards }) =>
    dashboards.slice(0, TITLES_MAX).map((entry) => ({ slug, entry })),
  );
  const found = useQueries({ queries: asked.map(({ slug, entry }) => titleQuery(slug, entry)) });
  const titles = new Map(asked.map(({ slug, entry }, at) => [`${slug}/${entry.name}`, found[at]?.data]));
  return lists.map(({ slug, dashboards }) =>
    dashboards
      .map((entry) => ({ ...entry, title: titles.get(`${slug}/${entry.name}`) ?? entry.name }))
      .sort((a, b) => byText(a.title, b.title) || byText(a.name, b.name)),
  );
}

/** The dashboards of a pipeline with their titles. */
export const useTitled = (slug: string, dashboards: readonly DashboardEntry[] | undefined): Titled[] =>
  useTitles([{ slug, dashboards: dashboards ?? [] }])[0] ?? [];
