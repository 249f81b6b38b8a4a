/** Requests of dashboards. */
import { keepPreviousData, queryOptions } from "@tanstack/preact-query";
import { api, ask, sendRaw } from "../../api/client";
import { missing, statesOf, textOf } from "../../api/dashboards";
import { keys } from "../../api/queries";
import type { DataAnswer } from "../../api/types";
import { readDocument } from "./document";
import type { Choices } from "./values";

const dashboardKey = (slug: string, name: string) => [...keys.dashboards(slug), name] as const;

/** A parsed document. */
export const documentQuery = (slug: string, name: string) =>
  queryOptions({
    queryKey: [...dashboardKey(slug, name), "document"],
    queryFn: async ({ signal }) => {
      const { published } = await statesOf(slug, name);
      if (!published) throw missing(name);
      const saved = await textOf(slug, name, false, signal);
      return { ...saved, read: await readDocument(saved.text) };
    },
  });

/** Data of all panels. `etag`: version of the document. */
export const dataQuery = (
  slug: string,
  name: string,
  { draft, etag, choices }: { draft: boolean; etag: string | null; choices: Choices },
) =>
  queryOptions({
    queryKey: [...dashboardKey(slug, name), "data", draft, etag, choices],
    queryFn: ({ signal }): Promise<DataAnswer> =>
      ask(
        api.POST("/api/p/{pipeline}/dashboards/{name}/data", {
          params: { path: { pipeline: slug, name } },
          body: { params: choices, draft },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    // Expensive queries: refreshed on request or after a run.
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const schemaQuery = () =>
  queryOptions({
    queryKey: ["schemas", "dashboard"],
    queryFn: async ({ signal }): Promise<unknown> => (await sendRaw("/schemas/dashboard.json", { signal })).json(),
    staleTime: Number.POSITIVE_INFINITY,
  });
