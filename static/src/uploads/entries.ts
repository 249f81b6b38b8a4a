/** Files and folders of the lake that an action is about. */
import { useQuery } from "@tanstack/preact-query";
import type { LakeFile } from "../api/types";
import { walk } from "../api/walk";
import { counted } from "../format/number";

export type Entry =
  { kind: "folder"; key: string; name: string } | { kind: "file"; key: string; name: string; file: LakeFile };

/** Maximum number of objects for recursive actions. */
export const WALK_MAX = 100_000;

/** All files in the entries, recursively. */
export async function filesIn(entries: Entry[], signal?: AbortSignal): Promise<{ files: LakeFile[]; all: boolean }> {
  const files = entries.flatMap((entry) => (entry.kind === "file" ? [entry.file] : []));
  const folders = entries.flatMap((entry) => (entry.kind === "folder" ? [entry.key] : []));
  const walked = await walk(folders, { files: WALK_MAX, ...(signal ? { signal } : {}) });
  return { files: [...files, ...walked.files], all: walked.whole };
}

/** Lists the selected files, including those in folders. */
export function useSelectedFiles(entries: Entry[]) {
  const names = entries.map(({ key }) => key);
  return useQuery({
    queryKey: ["lake", "meant", names],
    queryFn: ({ signal }) => filesIn(entries, signal),
    staleTime: 0,
    gcTime: 0,
  });
}

export function named(entries: Entry[], files: number): string {
  const [first] = entries;
  if (entries.length === 1 && first)
    return first.kind === "file" ? first.name : `${counted(files, "file")} in ${first.name}/`;
  return counted(files, "file");
}
