/** Lists files below several folders of the lake, up to a limit. */
import { api, ask } from "./client";
import type { LakeFile } from "./types";

const PAGE = 1_000;

export interface WalkResult {
  files: LakeFile[];
  /** False if the listing was cut off. */
  whole: boolean;
}

/** `asks`: maximum number of requests. @throws ApiFailure */
export async function walk(
  prefixes: readonly string[],
  { files: filesMax, asks: asksMax = Infinity, signal }: { files: number; asks?: number; signal?: AbortSignal },
): Promise<WalkResult> {
  const files: LakeFile[] = [];
  const left: { prefix: string; after?: string }[] = prefixes.map((prefix) => ({ prefix }));
  let asks = 0;
  for (let query = left.shift(); query !== undefined; query = left.shift()) {
    if (asks >= asksMax || files.length >= filesMax) return { files, whole: false };
    asks += 1;
    const level = await ask(
      api.GET("/api/lake", { params: { query: { ...query, limit: PAGE } }, ...(signal ? { signal } : {}) }),
    );
    for (const file of level.files) files.push(file);
    const { prefix } = query;
    if (level.next !== null) left.unshift({ prefix, after: level.next });
    for (const folder of level.folders) if (folder !== prefix) left.push({ prefix: folder });
  }
  return { files, whole: true };
}
