/** Opens zip archives in the browser. */
import { unzip } from "fflate";
import { bytes } from "../format/number";
import { isSource } from "./source-names";

/** Maximum size of an archive, and of its decompressed CSVs; both are held in memory. */
const ARCHIVE_BYTES_MAX = 512 << 20;
const INFLATED_BYTES_MAX = 1 << 30;

const isHidden = (path: string): boolean =>
  path.split("/").some((segment) => segment.startsWith(".") || segment === "__MACOSX");

/** The CSVs of an archive, named by their paths. @throws Error with what to do */
export async function unzipped(archive: File): Promise<File[]> {
  const tooLarge = (found: number, most: number) =>
    new Error(`it has ${bytes(found)}; at most ${bytes(most)} are opened here. Extract it, then drop the CSVs`);
  if (archive.size > ARCHIVE_BYTES_MAX) throw tooLarge(archive.size, ARCHIVE_BYTES_MAX);
  const packed = new Uint8Array(await archive.arrayBuffer());
  let inflated = 0;
  const entries = await new Promise<Record<string, Uint8Array>>((resolve, reject) => {
    unzip(
      packed,
      {
        filter: ({ name, originalSize }) => {
          const isWanted = !name.endsWith("/") && !isHidden(name) && isSource(name.slice(name.lastIndexOf("/") + 1));
          if (isWanted) inflated += originalSize;
          return isWanted && inflated <= INFLATED_BYTES_MAX;
        },
      },
      (error, data) => (error ? reject(new Error(`it can't be read: ${error.message}`)) : resolve(data)),
    );
  });
  if (inflated > INFLATED_BYTES_MAX) throw tooLarge(inflated, INFLATED_BYTES_MAX);
  return Object.entries(entries).map(
    ([path, data]) => new File([data as Uint8Array<ArrayBuffer>], path.replaceAll("/", "-"), { type: "text/csv" }),
  );
}
