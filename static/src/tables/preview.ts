/** Previews of a config over a file. */
import { api, ask } from "../api/client";
import type { StoredConfig } from "../api/config";
import type { Previewed } from "../api/types";
import { variantOf } from "../uploads/parts";
import { stagedGlob, type Staged } from "../uploads/staging";

/** Loads a file's first rows, rejects and row counts. `key`: the file's full key; empty: the first file. @throws ApiFailure */
export async function previewOf(
  pipeline: string,
  body: { config: unknown; key: string; limit: number; table?: string },
  signal?: AbortSignal,
): Promise<Previewed> {
  return await ask(
    api.POST("/api/p/{pipeline}/preview", {
      params: { path: { pipeline } },
      body: { ...body, key: body.key === "" ? undefined : body.key } as never,
      ...(signal ? { signal } : {}),
    }),
  );
}

/** The same of a sample, by the table that reads its file at `place` in the pipeline's folder. @throws ApiFailure */
export async function previewOfSample(
  sample: Staged,
  place: string,
  { config, table, limit }: { config: StoredConfig; table: string; limit: number },
  signal?: AbortSignal,
): Promise<Previewed> {
  const mapping = config.mappings?.find((one) => one.table === table);
  const variant = variantOf(mapping, place);
  const files = [stagedGlob(sample)];
  // A variant may read columns in another way, too.
  const own = { ...mapping, files, variants: variant && [{ ...variant, files }] };
  return await previewOf(sample.slug, { config: { ...config, mappings: [own] }, key: sample.key, limit }, signal);
}
