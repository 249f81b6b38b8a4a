import { api, ask } from "../api/client";
import { Confirm, Dialog } from "../components/dialog";
import { Failed, Skeleton } from "../components/states";
import { bytes, count, counted } from "../format/number";
import { pipelineOf } from "./keys";
import { named, useSelectedFiles, WALK_MAX, type Selected } from "./entries";
import { Losses } from "./losses";
import { Outcome, SHOWN_MAX, useBulk } from "./use-bulk";

/** Deletes files; lists them and the effect on tables. */
export function DeleteDialog({ entries, onClose }: { entries: Selected[]; onClose: () => void }) {
  const { data, error, refetch } = useSelectedFiles(entries);
  const { state, begin, busy, onStop } = useBulk("deleted");
  if (error || !data)
    return (
      <Dialog title="Delete" onClose={onClose}>
        {error ? (
          <Failed title="Couldn't read the folders" error={error} onRetry={() => void refetch()} />
        ) : (
          <Skeleton lines={3} />
        )}
      </Dialog>
    );
  const { files, all } = data;
  const slugs = [
    ...new Set(files.filter(({ state: known }) => known?.loaded !== "not_read").map(({ key }) => pipelineOf(key))),
  ].filter((slug) => slug !== undefined);
  const remove = async () => {
    const gone = await begin(
      files.map(({ key }) => key),
      (key) => ask(api.DELETE("/api/lake", { params: { query: { key } } })),
    );
    if (gone) onClose();
  };
  return (
    <Confirm
      title={`Delete ${named(entries, files.length)}`}
      action="Delete"
      danger
      busy={busy}
      ready={files.length > 0}
      onConfirm={() => void remove()}
      onClose={onClose}
      onStop={onStop}
    >
      <p>
        {counted(files.length, "file")}
        {!all && ` (and more: after ${count(WALK_MAX)} the counting stops)`},{" "}
        {bytes(files.reduce((sum, { size }) => sum + size, 0))}. This can&apos;t be undone.
      </p>
      <ul class="meant">
        {files.slice(0, SHOWN_MAX).map(({ key }) => (
          <li key={key} class="cut" title={key}>
            <code>{key}</code>
          </li>
        ))}
        {files.length > SHOWN_MAX && (
          <li class="dim">and {counted(files.length - SHOWN_MAX, "more file", "more files")}</li>
        )}
      </ul>
      {slugs.length > 0 && <Losses files={files} slugs={slugs} />}
      <Outcome state={state} verb="deleted" />
    </Confirm>
  );
}
