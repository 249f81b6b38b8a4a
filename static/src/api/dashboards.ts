/** Reads, writes, validates and publishes dashboards. */
import { api, ask, sendRaw } from "./client";
import { ApiFailure } from "./failure";
import { client, keys } from "./queries";
import type { DashboardVerdict } from "./types";

const part = encodeURIComponent;
const address = (slug: string, name: string) => `/api/p/${part(slug)}/dashboards/${part(name)}`;
const YAML = "application/yaml";

export interface Saved {
  text: string;
  etag: string | null;
}

/** Reads a stored document. @throws ApiFailure, also when it doesn't exist */
export async function textOf(slug: string, name: string, draft: boolean, signal?: AbortSignal): Promise<Saved> {
  const response = await sendRaw(`${address(slug, name)}${draft ? "?draft=1" : ""}`, signal ? { signal } : {});
  return { text: await response.text(), etag: response.headers.get("ETag") };
}

/**
 * Tells which versions of a dashboard exist, to avoid requests that end in 404. Bypasses the cache: another browser
 * may have published since.
 */
export async function statesOf(slug: string, name: string): Promise<{ published: boolean; draft: boolean }> {
  const listed = await ask(api.GET("/api/p/{pipeline}/dashboards", { params: { path: { pipeline: slug } } }));
  client.setQueryData(keys.dashboards(slug), listed);
  return listed.dashboards.find((entry) => entry.name === name) ?? { published: false, draft: false };
}

/** The service's own 404, without a request that the browser would log as an error. */
export const missing = (name: string): ApiFailure =>
  new ApiFailure(404, "dashboard_not_found", `there is no dashboard \`${name}\``);

/** Saves a draft if the stored one still has `etag` (null: if there is none). @throws ApiFailure */
export async function saveDraft(
  slug: string,
  name: string,
  text: string,
  etag: string | null,
): Promise<{ verdict: DashboardVerdict; etag: string | null }> {
  const condition: Record<string, string> = etag === null ? { "If-None-Match": "*" } : { "If-Match": etag };
  const headers = { "Content-Type": YAML, ...condition };
  const response = await sendRaw(`${address(slug, name)}?draft=1`, { method: "PUT", body: text, headers });
  return { verdict: (await response.json()) as DashboardVerdict, etag: response.headers.get("ETag") };
}

/** Runs the full validation. */
export async function validate(
  slug: string,
  name: string,
  text: string,
  signal?: AbortSignal,
): Promise<DashboardVerdict> {
  const init = { method: "POST", body: text, headers: { "Content-Type": YAML }, ...(signal ? { signal } : {}) };
  const response = await sendRaw(`${address(slug, name)}/validate`, init);
  return (await response.json()) as DashboardVerdict;
}

export async function publish(slug: string, name: string, etag: string | null): Promise<void> {
  await sendRaw(`${address(slug, name)}/publish`, {
    method: "POST",
    ...(etag === null ? {} : { headers: { "If-Match": etag } }),
  });
}

export const create = (slug: string, name: string) =>
  ask(api.POST("/api/p/{pipeline}/dashboards", { params: { path: { pipeline: slug } }, body: { name } }));

export const remove = (slug: string, name: string) =>
  ask(api.DELETE("/api/p/{pipeline}/dashboards/{name}", { params: { path: { pipeline: slug, name } } }));
