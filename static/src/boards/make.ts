/** Creates starter dashboards. */
import { client, dashboardsQuery, keys } from "../api/queries";
import type { Table } from "../api/types";
import { create, saveDraft, textOf } from "../api/dashboards";
import { freeSlug, slugFrom } from "../format/slug";
import { starter } from "./starter";

/** A free dashboard name close to the given text. */
export const freeName = (text: string, taken: readonly string[]): string =>
  freeSlug(slugFrom(text) || "dashboard", taken);

/** Creates the draft; without a table, from the template. @throws ApiFailure */
export async function makeDraft(slug: string, name: string, table: Table | undefined): Promise<void> {
  const text = table && (await starter(slug, table));
  await create(slug, name);
  if (text) await saveDraft(slug, name, text, (await textOf(slug, name, true)).etag);
  await client.invalidateQueries({ queryKey: keys.dashboards(slug) });
}

/** Creates the draft of a table under a free name and returns the name. @throws ApiFailure */
export async function makeDashboardOf(slug: string, table: Table): Promise<string> {
  const { dashboards } = await client.fetchQuery({ ...dashboardsQuery(slug), staleTime: 0 });
  const name = freeName(
    table.name,
    dashboards.map((one) => one.name),
  );
  await makeDraft(slug, name, table);
  return name;
}
