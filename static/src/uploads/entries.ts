/** Files and folders of the lake that an action is about. */
import { useQuery } from "@tanstack/preact-query";
import { api, ask } from "../api/client";
import type { LakeFile } from "../api/types";
import { walk } from "../api/walk";
import { counted } from "../format/number";

export type Entry =
  { kind: "folder"; key: string; name: string } | { kind: "file"; key: string; name: string; file: LakeFile };

/** An entry, or a file of which only the key is known. */
export type Selected = Entry | { kind: "key"; key: string; name: string };

/** Maximum number of objects for recursive actions. */
export const WALK_MAX = 100_000;

/** All files in the entries, recursively. */
export async function filesIn(entries: Selected[], signal?: AbortSignal): Promise<{ files: LakeFile[]; all: boolean }> {
  const files = entries.flatMap((entry) => (entry.kind === "file" ? [entry.file] : []));
  const folders = entries.flatMap((entry) => (entry.kind === "folder" ? [entry.key] : []));
  const walked = await walk(folders, { files: WALK_MAX, ...(signal ? { signal } : {}) });
  const keys = entries.filter(({ kind }) => kind === "key").map(({ key }) => key);
  const named = await Promise.all(keys.map((key) => fileOf(key, signal)));
  return { files: [...files, ...named.filter((file) => file !== undefined), ...walked.files], all: walked.whole };
}

/** The file with a key; undefined if there is none. Of keys that begin with it, it is the first. */
export async function fileOf(key: string, signal?: AbortSignal): Promise<LakeFile | undefined> {
  const query = { prefix: key, limit: 1 };
  const level = await ask(api.GET("/api/lake", { params: { query }, ...(signal ? { signal } : {}) }));
  return level.files.find((file) => file.key === key);
}

/** Lists the selected files, including those in folders. */
export function useSelectedFiles(entries: Selected[]) {
  const names = entries.map(({ key }) => key);
  return useQuery({
    queryKey: ["lake", "meant", names],
    queryFn: ({ signal }) => filesIn(entries, signal),
    staleTime: 0,
    gcTime: 0,
  });
}

export function named(entries: Selected[], files: number): string {
  const [first] = entries;
  if (entries.length === 1 && first)
    return first.kind !== "folder" ? first.name : `${counted(files, "file")} in ${first.name}/`;
  return counted(files, "file");
}
