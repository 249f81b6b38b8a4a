/** Creates pipelines. */
import type { QueryClient } from "@tanstack/preact-query";
import { api, ask } from "../../api/client";
import { saveTitle } from "../../api/config";
import { keys } from "../../api/queries";

export const SAMPLE_SLUG = "flights";

/** Creates the sample and enqueues its first run, which would otherwise start some seconds later. */
export async function makeSample(cache: QueryClient, slug: string): Promise<void> {
  await ask(api.POST("/api/pipelines", { body: { slug, template: "flights" } }));
  // If this fails, the automatic run starts anyway.
  await ask(api.POST("/api/p/{pipeline}/jobs", { params: { path: { pipeline: slug }, query: {} } })).catch(
    () => undefined,
  );
  void cache.invalidateQueries({ queryKey: keys.pipelines });
}

/** Creates an empty pipeline with a config and an optional title. */
export async function makeBlank(cache: QueryClient, slug: string, title: string): Promise<void> {
  await ask(api.POST("/api/pipelines", { body: { slug, template: "blank" } }));
  if (title) await saveTitle(slug, title).catch(() => undefined);
  void cache.invalidateQueries({ queryKey: keys.pipelines });
}
