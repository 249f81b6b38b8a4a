import { useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { loadConfig, saveConfig } from "../../api/config";
import type { TableStatus } from "../../api/types";
import { Button } from "../../components/button";
import { toast } from "../../components/toasts";
import { useRun } from "../../shell/pipeline";
import { withMapping } from "../../tables/changes";
import { fileOf } from "../../uploads/entries";
import { keyOfExact, leavesOut } from "../../uploads/globs";
import { UnreadRow } from "./unread-row";

/** Files that are listed. */
const LISTED_MAX = 20;

/** Files of the lake that the config of a table leaves out by name, relative to the pipeline's folder. */
export function useLeftOut(slug: string, table: TableStatus | undefined): string[] {
  const globs = (table?.globs ?? []).filter(leavesOut).map((glob) => glob.slice(1));
  const named = globs.map(keyOfExact).filter((key) => key !== undefined);
  const keys = named.slice(0, LISTED_MAX);
  const { data } = useQuery({
    queryKey: ["lake", "left out", slug, keys],
    queryFn: async ({ signal }) => {
      const files = await Promise.all(keys.map((key) => fileOf(`pipelines/${slug}/${key}`, signal)));
      return keys.filter((_, at) => files[at] !== undefined);
    },
    enabled: keys.length > 0,
  });
  return keys.length > 0 ? (data ?? []) : [];
}

export function LeftOutRow({
  slug,
  table,
  file,
  columns,
  chosen,
  onChoose,
}: {
  slug: string;
  table: string;
  file: string;
  columns: number;
  chosen: boolean;
  onChoose: (on: boolean) => void;
}) {
  const { run } = useRun(slug);
  const [busy, setBusy] = useState(false);
  const load = async () => {
    setBusy(true);
    try {
      const { config, etag } = await loadConfig(slug);
      const read = (files: unknown) =>
        Array.isArray(files)
          ? files.filter((glob) => !(typeof glob === "string" && leavesOut(glob) && keyOfExact(glob.slice(1)) === file))
          : files;
      await saveConfig(
        slug,
        withMapping(config, table, (mapping) => ({ ...mapping, files: read(mapping.files) })),
        etag,
      );
      await run(false);
    } catch (error) {
      toast.failed(`Couldn't load ${file}`, error);
    }
    setBusy(false);
  };
  return (
    <UnreadRow slug={slug} file={file} label="left out" columns={columns} chosen={chosen} onChoose={onChoose}>
      <span class="row wrap">
        Its rows aren&apos;t in the table.
        <Button variant="quiet" busy={busy} onClick={() => void load()}>
          Load it
        </Button>
      </span>
    </UnreadRow>
  );
}
