/** Finds and removes earlier uploads of the same file whose objects have other names, since it was compressed or cut. */
import { api, ask } from "../api/client";
import { client } from "../api/queries";
import { toast } from "../components/toasts";
import { folderOf, nameOf, namesOf } from "./keys";
import type { Batch } from "./queue";
import type { KeyedPart } from "./send";
import { formsOf, stemOf } from "./source-names";

const PAGE = 1_000;

/** Keys of objects with rows of the same files, other than those that the parts replace. @throws ApiFailure */
export async function earlierUploads(parts: readonly KeyedPart[]): Promise<string[]> {
  const own = new Set(parts.map(({ key }) => key));
  const files = new Map(parts.map(({ key, of }) => [folderOf(key) + of, { folder: folderOf(key), of }]));
  const found = await Promise.all(
    [...files.values()].map(async ({ folder, of }) => {
      const query = { prefix: folder + stemOf(of), limit: PAGE };
      const level = await ask(api.GET("/api/lake", { params: { query } }));
      const forms = formsOf(of);
      return level.files.map(({ key }) => key).filter((key) => forms.test(nameOf(key)) && !own.has(key));
    }),
  );
  return [...new Set(found.flat())].sort();
}

/** Deletes the objects once the whole batch is uploaded. */
export async function deleteAfter(batch: Batch, keys: readonly string[]): Promise<void> {
  await batch.ended;
  if (batch.uploads.some(({ state }) => state !== "done")) {
    return toast.failed(`Kept ${namesOf(keys)}`, new Error("not all files were uploaded. Add the file again"));
  }
  try {
    for (const key of keys) await ask(api.DELETE("/api/lake", { params: { query: { key } } }));
    toast.done(`Replaced ${namesOf(keys)}`);
  } catch (error) {
    toast.failed(`Couldn't delete ${namesOf(keys)}, whose rows stay in the table`, error);
  } finally {
    void client.invalidateQueries({ queryKey: ["lake"] });
  }
}
