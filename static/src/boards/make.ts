/** Creates starter dashboards. */
import { client, dashboardsQuery, keys } from "../api/queries";
import type { Table } from "../api/types";
import { create, saveDraft, textOf } from "../api/dashboards";
import { starter } from "./starter";

const NAME_CHARACTERS_MAX = 63;

/** A free dashboard name close to the given text. */
export function freeName(text: string, taken: readonly string[]): string {
  const plain = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, NAME_CHARACTERS_MAX);
  const name = plain || "dashboard";
  if (!taken.includes(name)) return name;
  for (let number = 2; ; number += 1) {
    const end = `-${number}`;
    const twin = name.slice(0, NAME_CHARACTERS_MAX - end.length) + end;
    if (!taken.includes(twin)) return twin;
  }
}

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
