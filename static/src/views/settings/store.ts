/** The settings with the tag that they are saved under. */
import { queryOptions, type QueryClient } from "@tanstack/preact-query";
import { api, askWhole } from "../../api/client";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import type { Settings } from "../../api/types";
import { merged } from "./merge";

export interface Tagged {
  settings: Settings;
  tag: string | null;
}

const TAGGED = ["settings-tagged"] as const;
/** Somebody who changes something just as often has to be met first. */
const TRIES = 3;

async function read(signal?: AbortSignal): Promise<Tagged> {
  const { data, response } = await askWhole(api.GET("/api/settings", signal ? { signal } : {}));
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
  const { data, response } = await askWhole(api.PUT("/api/settings", { params: { header }, body: settings }));
  return { settings: data, tag: response.headers.get("ETag") };
}

/**
 * Saves `mine`, which began as `base`. What somebody else changed meanwhile is kept; a conflict is given back unsaved.
 * @throws ApiFailure
 */
export async function saveSettings(cache: QueryClient, base: Tagged, mine: Settings): Promise<Tagged | Conflict> {
  let [known, wanted] = [base, mine];
  for (let tries = 1; ; tries += 1) {
    try {
      const stored = await write(wanted, known.tag);
      cache.setQueryData(TAGGED, stored);
      cache.setQueryData(keys.settings, stored.settings);
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
