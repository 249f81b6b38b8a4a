import { queryOptions, useQuery, useQueryClient, type QueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, ask } from "../api/client";
import { saveTitle } from "../api/config";
import { holding } from "../api/held";
import { dashboardsQuery, keys, pipelinesQuery, savedQueriesQuery, tablesQuery } from "../api/queries";
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

/** Longest title that a config may have. */
const TITLE_CHARS_MAX = 200;

/** Changes a pipeline's title and slug. `onDone`: the slug has changed. */
export function RenamePipeline({ slug, onDone, onClose }: Props & { onDone: (name: string) => void }) {
  const cache = useQueryClient();
  const { data: listed } = useQuery(pipelinesQuery());
  const detail = listed?.pipelines.find((one) => one.slug === slug);
  const before = detail?.title ?? "";
  const [typed, setTyped] = useState<string>();
  const title = typed ?? before;
  const [name, setName] = useState(slug);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<{ of: "title" | "slug"; text: string }>();
  const { waiting, whenIdle } = useWhenIdle();
  const fault = name === slug ? undefined : slugFault(name);
  const retitled = typed !== undefined && title.trim() !== before;
  const ready = (name !== slug || retitled) && fault === undefined;
  const move = () =>
    whenIdle(() =>
      leaving(
        cache,
        slug,
        () => ask(api.PATCH("/api/pipelines/{slug}", { params: { path: { slug } }, body: { newSlug: name } })),
        async () => {
          await renameStar(cache, slug, name).catch(() => undefined);
          toast.done(`Renamed ${slug} to ${name}`);
          onDone(name);
          void cache.invalidateQueries({ queryKey: keys.settings });
        },
      ),
    );
  const rename = async () => {
    setBusy(true);
    setRefused(undefined);
    let of: "title" | "slug" = "title";
    try {
      if (retitled) await saveTitle(slug, title.trim());
      of = "slug";
      if (name !== slug) return await move();
      toast.done("Title changed");
      onClose();
    } catch (error) {
      setRefused({ of, text: withRemedy(error) });
      setBusy(false);
    }
  };
  const errorOf = (field: "title" | "slug") => (refused?.of === field ? refused.text : undefined);
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
          label="Title"
          autofocus
          value={title}
          maxLength={TITLE_CHARS_MAX}
          disabled={detail?.config === "missing"}
          placeholder={slug}
          error={errorOf("title")}
          hint="Shown in lists and above the views; nothing else depends on it"
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setRefused(undefined);
          }}
        />
        <TextField
          label="URL name"
          class="mono"
          value={name}
          error={errorOf("slug") ?? fault}
          hint={SLUG_HINT}
          onInput={(event) => {
            setName(event.currentTarget.value);
            setRefused(undefined);
          }}
        />
        {name !== slug && (
          <p class="secondary">
            A new URL name renames the folders of its files and tables too. Links with the old one will stop working,
            and programs that upload to <code>pipelines/{slug}/</code> must use the new folder. Renaming a large
            pipeline takes a while.
          </p>
        )}
        {/* Submits on Enter although there are two fields. */}
        <button type="submit" hidden />
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
            toast.done(`Deleted ${slug} (${counted(objects, "file")})`);
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
