/** Creates starter dashboards. */
import { client, dashboardsQuery, keys } from "../api/queries";
import type { Table } from "../api/types";
import { create, saveDraft } from "../api/dashboards";
import { freeSlug, slugFrom } from "../format/slug";

/** A free dashboard name close to the given text. */
export const freeName = (text: string, taken: readonly string[]): string =>
  freeSlug(slugFrom(text) || "dashboard", taken);

/** Creates the draft; without a table, from the template. @throws ApiFailure */
export async function makeDraft(slug: string, name: string, table: Table | undefined): Promise<void> {
  if (table) {
    const { starter } = await import("./starter");
    await saveDraft(slug, name, await starter(slug, table), null);
  }
  if (!table) await create(slug, name);
  await client.invalidateQueries({ queryKey: keys.dashboards(slug) });
}

/** A free name for a dashboard of a table. @throws ApiFailure */
export async function freeNameOf(slug: string, table: string): Promise<string> {
  const { dashboards } = await client.fetchQuery({ ...dashboardsQuery(slug), staleTime: 0 });
  return freeName(
    table,
    dashboards.map((one) => one.name),
  );
}
