import { queryOptions, useQuery, useQueryClient, type QueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, ask } from "../api/client";
import { holding } from "../api/held";
import { dashboardsQuery, keys, savedQueriesQuery, tablesQuery } from "../api/queries";
import { renameStar } from "../api/settings";
import { walk, type WalkResult } from "../api/walk";
import { useWhenIdle } from "../api/when-idle";
import { Confirm } from "../components/dialog";
import { TextField } from "../components/field";
import { Note } from "../components/states";
import { toast } from "../components/toasts";
import { bytes, count, counted } from "../format/number";
import { withRemedy } from "../format/remedies";
import { SLUG_HINT, slugFault } from "../format/slug";

/** Limits beyond which counts are shown as "at least". */
const FILES_MAX = 20_000;
const POLLS_MAX = 40;

interface Props {
  slug: string;
  onClose: () => void;
}

/** Runs an operation that takes a slug away. `done`: goes to another view. No request asks for the slug in between. */
async function leaving<T>(
  cache: QueryClient,
  slug: string,
  operation: () => Promise<T>,
  done: (made: T) => void | Promise<void>,
): Promise<void> {
  const queryKey = keys.pipeline(slug);
  await holding(
    slug,
    async () => {
      await cache.cancelQueries({ queryKey });
      return operation();
    },
    async (made) => {
      await done(made);
      // Lists name the slug until they are loaded again.
      await cache.invalidateQueries({ queryKey: keys.pipelines });
      cache.removeQueries({ queryKey, type: "inactive" });
    },
  );
}

/** Renames a pipeline's slug. `onDone`: the rename has completed. */
export function RenamePipeline({ slug, onDone, onClose }: Props & { onDone: (name: string) => void }) {
  const cache = useQueryClient();
  const [name, setName] = useState(slug);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const { waiting, whenIdle } = useWhenIdle();
  const fault = name === slug ? undefined : slugFault(name);
  const ready = name !== slug && fault === undefined;
  const rename = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      const path = { slug };
      const body = { newSlug: name };
      await whenIdle(() =>
        leaving(
          cache,
          slug,
          () => ask(api.PATCH("/api/pipelines/{slug}", { params: { path }, body })),
          async () => {
            await renameStar(cache, slug, name).catch(() => undefined);
            toast.done(`Renamed ${slug} to ${name}`);
            onDone(name);
            void cache.invalidateQueries({ queryKey: keys.settings });
          },
        ),
      );
    } catch (error) {
      setRefused(withRemedy(error));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Rename ${slug}`}
      action="Rename"
      busy={busy}
      ready={ready}
      onConfirm={() => void rename()}
      onClose={onClose}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !busy) void rename();
        }}
      >
        <TextField
          label="New slug"
          class="mono"
          autofocus
          value={name}
          error={refused ?? fault}
          hint={SLUG_HINT}
          onInput={(event) => {
            setName(event.currentTarget.value);
            setRefused(undefined);
          }}
        />
        <p class="secondary">
          Renames the folders of its files and tables too; the title stays the same. Links with the old slug will stop
          working, and programs that upload to <code>pipelines/{slug}/</code> must use the new folder. Renaming a large
          pipeline takes a while.
        </p>
        {waiting && <Note>A run is in progress. The pipeline will be renamed when the run ends.</Note>}
      </form>
    </Confirm>
  );
}

const lakeQuery = (slug: string) =>
  queryOptions({
    queryKey: [...keys.pipeline(slug), "contents"] as const,
    queryFn: ({ signal }) => walk([`pipelines/${slug}/`], { files: FILES_MAX, asks: POLLS_MAX, signal }),
    staleTime: 0,
  });

interface DeletionContents {
  lake?: WalkResult | undefined;
  tables?: { name: string; rows: number }[] | undefined;
  dashboards?: number | undefined;
  queries?: number | undefined;
}

/** What a delete removes, as far as known: `412 files in the lake (1.2 GiB)`, `2 tables with 5 rows: a, b`, … */
export function deletionSummary({ lake, tables, dashboards, queries }: DeletionContents): string[] {
  const size = lake?.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
  const files =
    lake && `${lake.whole ? "" : "at least "}${counted(lake.files.length, "file")} in the lake (${bytes(size)})`;
  const rows = tables?.reduce((sum, table) => sum + table.rows, 0) ?? 0;
  const names = tables?.length ? ` with ${counted(rows, "row")}: ${tables.map(({ name }) => name).join(", ")}` : "";
  return [
    files ?? "all files in the lake",
    tables ? counted(tables.length, "table") + names : "all tables",
    `${dashboards === undefined ? "all dashboards" : counted(dashboards, "dashboard")} and ${
      queries === undefined ? "all saved queries" : counted(queries, "saved query", "saved queries")
    }`,
    "the config and the job history",
  ];
}

function useDeletionContents(slug: string): DeletionContents {
  const lake = useQuery(lakeQuery(slug)).data;
  const tables = useQuery(tablesQuery(slug)).data?.tables;
  const dashboards = useQuery(dashboardsQuery(slug)).data?.dashboards.length;
  const saved = useQuery(savedQueriesQuery(slug)).data?.queries.length;
  return { lake, tables: tables?.filter(({ system }) => !system), dashboards, queries: saved };
}

/** Lists what is deleted and asks for the slug. `onDone`: the pipeline is deleted. */
export function DeletePipeline({ slug, onDone, onClose }: Props & { onDone: () => void }) {
  const cache = useQueryClient();
  const contents = useDeletionContents(slug);
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const { waiting, whenIdle } = useWhenIdle();
  const remove = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      const params = { path: { slug } };
      await whenIdle(() =>
        leaving(
          cache,
          slug,
          () => ask(api.DELETE("/api/pipelines/{slug}", { params })),
          ({ objects }) => {
            toast.done(`Deleted ${slug} (${counted(objects, "object")})`);
            onDone();
          },
        ),
      );
    } catch (error) {
      setRefused(withRemedy(error));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Delete ${slug}`}
      action={`Delete ${slug}`}
      danger
      busy={busy}
      ready={typed === slug}
      onConfirm={() => void remove()}
      onClose={onClose}
    >
      <p>This permanently deletes:</p>
      <ul class="losses">
        {deletionSummary(contents).map((words) => (
          <li key={words}>{words}</li>
        ))}
      </ul>
      <p class="secondary">To keep a copy, export the pipeline first. The archive can be imported again.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === slug && !busy) void remove();
        }}
      >
        <TextField
          label={`Type ${slug} to confirm`}
          class="mono"
          autofocus
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </form>
      {refused && <Note tone="bad">Couldn't delete the pipeline: {refused}</Note>}
      {waiting && <Note>A run is in progress. The pipeline will be deleted when the run ends.</Note>}
      {busy && !waiting && (
        <p class="secondary">Deleting {contents.lake ? count(contents.lake.files.length) : "all"} files and tables…</p>
      )}
    </Confirm>
  );
}
