/** Previews of a config over a file. */
import { api, ask } from "../api/client";
import type { Previewed } from "../api/types";

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
