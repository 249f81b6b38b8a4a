/** Creates starter dashboards. */
import { client, dashboardsQuery, keys } from "../api/queries";
import { asFailure } from "../api/failure";
import type { Table } from "../api/types";
import { create, saveDraft } from "../api/dashboards";
import { freeSlug, slugFrom } from "../format/slug";

/** A free dashboard name close to the given text. */
export const freeName = (text: string, taken: readonly string[]): string =>
  freeSlug(slugFrom(text) || "dashboard", taken);

/** Dashboards that may have been created: the answer was lost. */
const unanswered = new Set<string>();

/**
 * Creates the draft; without a table, from the template. One that an attempt without an answer created is taken.
 * @throws ApiFailure
 */
export async function makeDraft(slug: string, name: string, table: Table | undefined): Promise<void> {
  const text = table && (await (await import("./starter")).starter(slug, table));
  const key = `${slug}/${name}`;
  try {
    await (text === undefined ? create(slug, name) : saveDraft(slug, name, text, null));
  } catch (error) {
    const { status, code } = asFailure(error);
    const exists = status === 412 || code === "already_exists";
    if (status === 0) unanswered.add(key);
    if (!exists || !unanswered.has(key)) throw error;
  }
  unanswered.delete(key);
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
