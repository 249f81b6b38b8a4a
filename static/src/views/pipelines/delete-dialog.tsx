import { queryOptions, useQuery, useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { asFailure } from "../../api/failure";
import { dashboardsQuery, keys } from "../../api/queries";
import { Confirm } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Note } from "../../components/states";
import { say } from "../../components/toasts";
import { bytes, count, counted } from "../../format/number";
import { remedyOf } from "../../format/remedies";
import type { PipelineCard } from "./cards";

/** Folders that are looked into before "at least" is said. */
const FOLDERS_MAX = 40;

interface LakeSize {
  files: number;
  bytes: number;
  /** False: there are more. */
  whole: boolean;
}

/** How many files of the lake a pipeline has. */
async function lakeSize(slug: string, signal: AbortSignal): Promise<LakeSize> {
  const found: LakeSize = { files: 0, bytes: 0, whole: true };
  const todo: { prefix: string; after?: string }[] = [{ prefix: `pipelines/${slug}/` }];
  for (let looks = 0; todo.length > 0; looks += 1) {
    if (looks >= FOLDERS_MAX) return { ...found, whole: false };
    const page = todo.pop();
    if (!page) break;
    const level = await ask(api.GET("/api/lake", { params: { query: { ...page, limit: 1_000 } }, signal }));
    found.files += level.files.length;
    found.bytes += level.files.reduce((sum, file) => sum + file.size, 0);
    for (const prefix of level.folders) if (prefix !== page.prefix) todo.push({ prefix });
    if (level.next) todo.push({ prefix: page.prefix, after: level.next });
  }
  return found;
}

const lossQuery = (slug: string) =>
  queryOptions({
    queryKey: [...keys.pipeline(slug), "loss"] as const,
    queryFn: ({ signal }) => lakeSize(slug, signal),
    staleTime: 0,
  });

/** `412 files (1.2 GiB) and 3 tables with 5,000 rows`. */
export function lossWords(card: PipelineCard, lake: LakeSize | undefined, dashboards: number | undefined): string[] {
  const files =
    lake && `${lake.whole ? "" : "at least "}${counted(lake.files, "file")} of the lake (${bytes(lake.bytes)})`;
  const rows = typeof card.rows === "number" ? ` with ${counted(card.rows, "row")}` : "";
  return [
    files ?? "the files of the lake (counting…)",
    `${counted(card.tables, "table")}${rows}`,
    dashboards === undefined ? "the dashboards" : counted(dashboards, "dashboard"),
    "the config, saved queries and the history of jobs",
  ];
}

/** Names what is lost, and wants the slug typed. */
export function DeletePipeline({ card, onClose }: { card: PipelineCard; onClose: () => void }) {
  const { slug } = card;
  const cache = useQueryClient();
  const lake = useQuery(lossQuery(slug));
  const dashboards = useQuery(dashboardsQuery(slug));
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const remove = async () => {
    setBusy(true);
    setRefused(undefined);
    try {
      const { objects } = await ask(api.DELETE("/api/pipelines/{slug}", { params: { path: { slug } } }));
      say.done(`${slug} is deleted: ${counted(objects, "object")}`);
      onClose();
      cache.removeQueries({ queryKey: keys.pipeline(slug) });
      void cache.invalidateQueries({ queryKey: keys.pipelines });
    } catch (error) {
      const failure = asFailure(error);
      setRefused([failure.message, remedyOf(failure)].filter(Boolean).join(". "));
    } finally {
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
      <p>This is lost for good:</p>
      <ul class="pipelines-loss">
        {lossWords(card, lake.data, dashboards.data?.dashboards.length).map((words) => (
          <li key={words}>{words}</li>
        ))}
      </ul>
      <p class="secondary">An export beforehand keeps all of it as one file.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === slug && !busy) void remove();
        }}
      >
        <TextField
          label={`Type ${slug} to delete it`}
          class="mono"
          autofocus
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </form>
      {refused && <Note tone="bad">It wasn't deleted: {refused}</Note>}
      {busy && <p class="secondary">Deleting {lake.data ? count(lake.data.files) : ""} files and the tables…</p>}
    </Confirm>
  );
}
