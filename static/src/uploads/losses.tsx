/** Which tables lose rows if files are deleted, and when. */
import { useQuery } from "@tanstack/preact-query";
import { loadConfig } from "../api/config";
import { isPaused, pausesQuery } from "../api/pauses";
import { client, lineageQuery, pipelinesQuery, tablesQuery } from "../api/queries";
import type { LakeFile } from "../api/types";
import { Skeleton } from "../components/states";
import { counted } from "../format/number";
import { pipelineOf } from "./keys";

/** Sources of a table that are looked at; the service gives no more at once. */
const SOURCES_MAX = 1_000;
/** Pipelines and tables whose rows are counted. */
const PIPELINES_MAX = 3;
const TABLES_MAX = 20;

export interface Loss {
  slug: string;
  table: string;
  files: number;
  rows: number;
  /** Whether all sources of the table were looked at. */
  complete: boolean;
  /** The table keeps the rows of deleted files. */
  keeps: boolean;
}

async function lossesOf(keys: readonly string[]): Promise<Loss[]> {
  const slugs = [...new Set(keys.map(pipelineOf))].filter((slug) => slug !== undefined).slice(0, PIPELINES_MAX);
  const meant = new Set(keys);
  const all = await Promise.all(
    slugs.map(async (slug) => {
      const { tables } = await client.fetchQuery(tablesQuery(slug));
      const config = await loadConfig(slug).then(
        (loaded) => loaded.config,
        () => undefined,
      );
      const keeping = new Set(
        config?.mappings?.filter(({ when_removed: how }) => how === "keep_rows").map(({ table }) => table),
      );
      const own = tables.filter(({ system }) => !system).slice(0, TABLES_MAX);
      return await Promise.all(
        own.map(async ({ name }): Promise<Loss> => {
          const query = { ...lineageQuery(slug, name, { limit: SOURCES_MAX }), staleTime: 0 };
          const { sources, sources_total: total } = await client.fetchQuery(query);
          const lost = sources.filter(({ key, archived }) => !archived && meant.has(`pipelines/${slug}/${key}`));
          const rows = lost.reduce((sum, { rows_written: written }) => sum + written, 0);
          const complete = total <= sources.length;
          return { slug, table: name, files: lost.length, rows, complete, keeps: keeping.has(name) };
        }),
      );
    }),
  );
  return all.flat().filter(({ files, complete }) => files > 0 || !complete);
}

/** `orders loses 400 rows of 1 file`. `several`: of several pipelines. */
export function lossText({ slug, table, files, rows, complete, keeps }: Loss, several: boolean): string {
  const name = several ? `${slug}.${table}` : table;
  const least = complete ? "" : "at least ";
  return `${name} ${keeps ? "keeps" : "loses"} ${least}${counted(rows, "row")} of ${counted(files, "file")}${
    keeps ? ", as its config says" : ""
  }`;
}

/** What the next runs do after the files are deleted. */
export function Losses({ files, slugs }: { files: readonly LakeFile[]; slugs: readonly string[] }) {
  const keys = files.map(({ key }) => key);
  const { data, error } = useQuery({
    queryKey: ["lake", "losses", keys],
    queryFn: () => lossesOf(keys),
    staleTime: 0,
    gcTime: 0,
  });
  const { data: listed } = useQuery(pipelinesQuery());
  const { data: pauses } = useQuery(pausesQuery());
  const held = slugs.filter((slug) => isPaused(pauses, slug));
  const isManual = (slug: string) => listed?.pipelines.find((one) => one.slug === slug)?.auto_run === false;
  const manual = slugs.filter((slug) => !held.includes(slug) && isManual(slug));
  const general = (
    <p>
      The next run of {slugs.join(", ")} removes their rows from the tables that read them, except from tables whose
      config keeps them.
    </p>
  );
  return (
    <>
      {error ? (
        general
      ) : !data ? (
        <Skeleton lines={2} label="Counting the rows" />
      ) : data.length === 0 ? (
        <p>No table has rows of {keys.length === 1 ? "this file" : "these files"} yet.</p>
      ) : (
        <>
          <p>
            {held.length + manual.length === 0
              ? `A run of ${slugs.join(", ")} follows by itself:`
              : `With the next run of ${slugs.join(", ")}:`}
          </p>
          <ul class="losses">
            {data.map((loss) => (
              <li key={`${loss.slug}.${loss.table}`}>{lossText(loss, slugs.length > 1)}</li>
            ))}
          </ul>
        </>
      )}
      {held.length > 0 && <p>Runs of {held.join(", ")} are paused: the rows stay until you resume them.</p>}
      {manual.length > 0 && (
        <p>Automatic runs of {manual.join(", ")} are off: the rows stay until you run the pipeline.</p>
      )}
    </>
  );
}
