/** Lists one level of the lake page by page. */
import { infiniteQueryOptions } from "@tanstack/preact-query";
import { api, ask } from "../../api/client";
import { isDraft } from "../../api/drafts";
import { IDLE_POLL_MS, keys } from "../../api/queries";
import type { LakeLevel } from "../../api/types";
import type { Entry } from "../../uploads/entries";

const PAGE = 500;
export const levelQuery = (prefix: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.lake(prefix), "level"],
    queryFn: ({ signal, pageParam }) =>
      ask(
        api.GET("/api/lake", {
          params: { query: { prefix, limit: PAGE, state: true, ...(pageParam === "" ? {} : { after: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    // Runs don't report files they read, so pages are polled; the more pages, the slower.
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && awaitsRun(data.pages) && IDLE_POLL_MS * data.pages.length,
  });

/** Whether the next run will read a listed file. */
const awaitsRun = (pages: LakeLevel[]): boolean =>
  pages.some(({ files }) => files.some(({ state }) => state?.loaded === "new" || state?.loaded === "changed"));

/** Placeholder for an empty name, as in `a//b`. */
export const NO_NAME = "(no name)";
/** Placeholder for an object named like its folder. */
const MARKER = "(folder marker)";

/** Entries of pages: folders first within each page, so that loading more doesn't move rows. */
export function entriesOf(pages: LakeLevel[]): Entry[] {
  const folders = ({ prefix, folders: keys }: LakeLevel) =>
    keys.map((key): Entry => ({ kind: "folder", key, name: key.slice(prefix.length, -1) || NO_NAME }));
  const files = ({ prefix, files: found }: LakeLevel) =>
    found.map((file): Entry => ({ kind: "file", key: file.key, name: file.key.slice(prefix.length) || MARKER, file }));
  return (
    pages
      .flatMap((page) => [...folders(page), ...files(page)])
      // A sample of a pipeline that is being created is not a user's file.
      .filter(({ kind, key, name }) => !(kind === "folder" && key === `pipelines/${name}/` && isDraft(name)))
  );
}

/** Whether a name contains all words of the filter. */
export function matches(name: string, filter: string): boolean {
  const lower = name.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
