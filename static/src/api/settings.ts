/** The settings with their ETag. */
import { queryOptions, type QueryClient } from "@tanstack/preact-query";
import { api, askWithResponse } from "./client";
import { asFailure } from "./failure";
import { keys } from "./queries";
import type { Settings } from "./types";
import { merged } from "./settings-merge";

export interface Tagged {
  settings: Settings;
  tag: string | null;
}

const TAGGED = ["settings-tagged"] as const;
/** Retries after a concurrent change. */
const TRIES = 3;

async function read(signal?: AbortSignal): Promise<Tagged> {
  const { data, response } = await askWithResponse(api.GET("/api/settings", signal ? { signal } : {}));
  return { settings: data, tag: response.headers.get("ETag") };
}

export const taggedQuery = () => queryOptions({ queryKey: TAGGED, queryFn: ({ signal }) => read(signal) });

export interface Conflict {
  mine: Settings;
  theirs: Tagged;
  fields: (keyof Settings)[];
}

async function write(settings: Settings, tag: string | null): Promise<Tagged> {
  const header = tag ? { "If-Match": tag } : {};
  const { data, response } = await askWithResponse(api.PUT("/api/settings", { params: { header }, body: settings }));
  return { settings: data, tag: response.headers.get("ETag") };
}

/** Puts the stored settings into the cache. */
export function keepSettings(cache: QueryClient, stored: Tagged): void {
  cache.setQueryData(TAGGED, stored);
  cache.setQueryData(keys.settings, stored.settings);
}

/**
 * Saves `mine`, which started from `base`, and merges concurrent changes. Returns a conflict without saving. @throws
 * ApiFailure
 */
export async function saveSettings(cache: QueryClient, base: Tagged, mine: Settings): Promise<Tagged | Conflict> {
  let [known, wanted] = [base, mine];
  for (let tries = 1; ; tries += 1) {
    try {
      const stored = await write(wanted, known.tag);
      keepSettings(cache, stored);
      return stored;
    } catch (error) {
      if (asFailure(error).code !== "precondition_failed" || tries >= TRIES) throw error;
      const theirs = await read();
      const { settings, conflicts } = merged(known.settings, wanted, theirs.settings);
      if (conflicts.length > 0) return { mine: settings, theirs, fields: conflicts };
      [known, wanted] = [theirs, settings];
    }
  }
}

export const isConflict = (answer: Tagged | Conflict): answer is Conflict => "theirs" in answer;

export const refreshed = (cache: QueryClient): Promise<void> => cache.invalidateQueries({ queryKey: TAGGED });

/** Changes the list of starred pipelines in the stored settings. @throws ApiFailure */
export async function changeStars(cache: QueryClient, change: (starred: string[]) => string[]): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const known = await read();
    const starred = change(known.settings.starred);
    if (starred.join() === known.settings.starred.join()) return keepSettings(cache, known);
    try {
      const stored = await write({ ...known.settings, starred }, known.tag);
      // A response in flight would restore the old list.
      await cache.cancelQueries({ queryKey: keys.settings });
      return keepSettings(cache, stored);
    } catch (error) {
      if (asFailure(error).code !== "precondition_failed" || tries >= TRIES) throw error;
    }
  }
}

/** Keeps the star of a renamed pipeline. */
export const renameStar = (cache: QueryClient, from: string, to: string): Promise<void> =>
  changeStars(cache, (starred) => starred.map((one) => (one === from ? to : one)));
