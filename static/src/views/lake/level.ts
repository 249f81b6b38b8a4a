/** One level of the lake, page by page. */
import { infiniteQueryOptions } from "@tanstack/preact-query";
import { api, ask } from "../../api/client";
import { isDraft } from "../../api/drafts";
import { CALM_MS, keys } from "../../api/queries";
import type { LakeFile, LakeLevel } from "../../api/types";
import { walk } from "../../api/walk";

export type Entry =
  { kind: "folder"; key: string; name: string } | { kind: "file"; key: string; name: string; file: LakeFile };

const PAGE = 500;
/** Objects that are walked through at most, to count or to act on what is in folders. */
export const WALK_MAX = 100_000;

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
    // A run tells nobody here that it has read a file. All pages are asked for anew: the more, the more seldom.
    refetchInterval: ({ state: { data } }) =>
      data !== undefined && awaitsRun(data.pages) && CALM_MS * data.pages.length,
  });

/** Whether a file is there that the next run will read. */
const awaitsRun = (pages: LakeLevel[]): boolean =>
  pages.some(({ files }) => files.some(({ state }) => state?.loaded === "new" || state?.loaded === "changed"));

/** Stands for an empty name, as `a//b` has one. */
export const NO_NAME = "(no name)";
/** Stands for the name of an object that is named like its folder. */
const MARKER = "(folder marker)";

/** What pages hold: each page's folders before its files, so that what is shown stays where it is when more comes. */
export function entriesOf(pages: LakeLevel[]): Entry[] {
  const folders = ({ prefix, folders: keys }: LakeLevel) =>
    keys.map((key): Entry => ({ kind: "folder", key, name: key.slice(prefix.length, -1) || NO_NAME }));
  const files = ({ prefix, files: found }: LakeLevel) =>
    found.map((file): Entry => ({ kind: "file", key: file.key, name: file.key.slice(prefix.length) || MARKER, file }));
  return (
    pages
      .flatMap((page) => [...folders(page), ...files(page)])
      // A sample of a pipeline that is being made is no one's file.
      .filter(({ kind, key, name }) => !(kind === "folder" && key === `pipelines/${name}/` && isDraft(name)))
  );
}

/** Whether a name holds all the words that were typed. */
export function matches(name: string, filter: string): boolean {
  const lower = name.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** All files in these folders, whatever their depth, and the files themselves. */
export async function filesIn(entries: Entry[], signal?: AbortSignal): Promise<{ files: LakeFile[]; all: boolean }> {
  const files = entries.flatMap((entry) => (entry.kind === "file" ? [entry.file] : []));
  const folders = entries.flatMap((entry) => (entry.kind === "folder" ? [entry.key] : []));
  const walked = await walk(folders, { files: WALK_MAX, ...(signal ? { signal } : {}) });
  return { files: [...files, ...walked.files], all: walked.whole };
}
