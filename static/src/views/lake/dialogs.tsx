import { useQuery } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { client } from "../../api/queries";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Failed, Note, Skeleton } from "../../components/states";
import { Bar } from "../../components/status";
import { toast } from "../../components/toasts";
import { bytes, count, counted } from "../../format/number";
import { useUnsaved } from "../../browser/unsaved";
import { joinKey, keyProblem, nameOf, pipelineOf } from "../../uploads/keys";
import { each, type Failure } from "./bulk";
import { useStrayProblem } from "./stray";
import { filesIn, WALK_MAX, type Entry } from "./level";

const SHOWN_MAX = 5;

interface Props {
  /** Selected files and folders. */
  entries: Entry[];
  onClose: () => void;
}

/** Lists the selected files, including those in folders. */
function useSelectedFiles(entries: Entry[]) {
  const names = entries.map(({ key }) => key);
  return useQuery({
    queryKey: ["lake", "meant", names],
    queryFn: ({ signal }) => filesIn(entries, signal),
    staleTime: 0,
    gcTime: 0,
  });
}

interface Bulk {
  total: number;
  done: number;
  /** Set when it has ended. */
  failures?: Failure[];
  stopped?: boolean;
}

/** A bulk action with progress and cancellation. `verb`: past participle. */
function useBulk(verb: string) {
  const [state, setState] = useState<Bulk>();
  const controller = useRef<AbortController>();
  const busy = state !== undefined && !state.failures;
  useUnsaved(`files that are being ${verb}`, busy);
  useEffect(() => () => controller.current?.abort(), []);
  const begin = async (items: readonly string[], work: (key: string) => Promise<unknown>): Promise<boolean> => {
    const { signal } = (controller.current = new AbortController());
    const total = items.length;
    let done = 0;
    setState({ total, done });
    const failures = await each(items, work, (now) => setState({ total, done: (done = now) }), signal);
    const stopped = done < total;
    setState({ total, done, failures, stopped });
    void client.invalidateQueries({ queryKey: ["lake"] });
    if (failures.length > 0 || stopped) return false;
    toast.done(`${counted(total, "file")} ${verb}`);
    return true;
  };
  const stop = () => controller.current?.abort();
  return { state, begin, busy, onStop: busy ? stop : undefined };
}

function Outcome({ state, verb }: { state: Bulk | undefined; verb: string }) {
  if (!state) return null;
  const { total, done, failures, stopped } = state;
  if (!failures)
    return (
      <div class="row">
        <Bar done={done} total={total} label={verb} />
        <span class="num">
          {count(done)} of {count(total)}
        </span>
      </div>
    );
  return (
    <>
      {stopped && (
        <Note tone="warn">
          Stopped: {count(done - failures.length)} of {counted(total, "file")} are {verb}, the rest is as it was.
        </Note>
      )}
      <Failures failures={failures} total={total} verb={verb} />
    </>
  );
}

function Failures({ failures, total, verb }: { failures: Failure[]; total: number; verb: string }) {
  if (failures.length === 0) return null;
  return (
    <Note tone="bad">
      <p>
        {count(failures.length)} of {counted(total, "file")} weren&apos;t {verb}.
      </p>
      <ul>
        {failures.slice(0, SHOWN_MAX).map(({ key, error }) => (
          <li key={key}>
            <code>{nameOf(key)}</code>: {error.message}
          </li>
        ))}
      </ul>
      {failures.length > SHOWN_MAX && <p>and {counted(failures.length - SHOWN_MAX, "more file", "more files")}</p>}
    </Note>
  );
}

function named(entries: Entry[], files: number): string {
  const [first] = entries;
  if (entries.length === 1 && first)
    return first.kind === "file" ? first.name : `${counted(files, "file")} in ${first.name}/`;
  return counted(files, "file");
}

/** Deletes files; lists them and the effect on tables. */
export function DeleteDialog({ entries, onClose }: Props) {
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
      <ul class="lake-meant">
        {files.slice(0, SHOWN_MAX).map(({ key }) => (
          <li key={key} class="cut" title={key}>
            <code>{key}</code>
          </li>
        ))}
        {files.length > SHOWN_MAX && (
          <li class="dim">and {counted(files.length - SHOWN_MAX, "more file", "more files")}</li>
        )}
      </ul>
      {slugs.length > 0 && (
        <p>
          The next run of {slugs.join(", ")} removes their rows from the tables that read them, except from tables with{" "}
          <code>when_removed: keep_rows</code>.
        </p>
      )}
      <Outcome state={state} verb="deleted" />
    </Confirm>
  );
}

/** Moves files to a folder, or a single file to a key. */
export function MoveDialog({ entries, prefix, onClose }: Props & { prefix: string }) {
  const { data, error, refetch } = useSelectedFiles(entries);
  const { state, begin, busy, onStop } = useBulk("moved");
  const [first] = entries;
  const single = entries.length === 1 && first?.kind === "file" ? first.key : undefined;
  const [target, setTarget] = useState(single ?? prefix);
  const to = (key: string): string => (single === undefined ? joinKey(target, key.slice(prefix.length)) : target);
  const files = data?.files ?? [];
  const targets = files.map(({ key }) => to(key));
  const stray = useStrayProblem(targets);
  const problem = targets.map(keyProblem).find((one) => one !== undefined) ?? stray;
  const same = single === undefined ? joinKey(target, "x") === joinKey(prefix, "x") : target === single;
  const move = async () => {
    const moved = await begin(
      files.map(({ key }) => key),
      (key) => ask(api.POST("/api/lake", { body: { from: key, to: to(key) } })),
    );
    if (moved) onClose();
  };
  return (
    <Confirm
      title={`Move ${named(entries, files.length)}`}
      action="Move"
      busy={busy || (!data && !error)}
      ready={files.length > 0 && problem === undefined && !same}
      onConfirm={() => void move()}
      onClose={onClose}
      onStop={onStop}
    >
      {error && <Failed title="Couldn't read the folders" error={error} onRetry={() => void refetch()} />}
      <TextField
        label={single === undefined ? "Move to folder" : "Move to"}
        class="mono"
        value={target}
        error={problem && files.length > 0 ? `Invalid: ${problem}.` : undefined}
        hint={
          single === undefined
            ? "Path from the lake's root. File names stay the same; missing folders are created."
            : "Folder and name from the lake's root. Existing files aren't replaced."
        }
        onInput={(event) => setTarget(event.currentTarget.value)}
      />
      <Outcome state={state} verb="moved" />
    </Confirm>
  );
}

/** Creates a folder, which exists from its first file on. */
export function FolderDialog({
  prefix,
  onOpen,
  onClose,
}: {
  prefix: string;
  onOpen: (prefix: string) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState("");
  const key = joinKey(prefix, name.replace(/\/$/, ""));
  const stray = useStrayProblem([`${key}/x`]);
  const problem = name === "" ? undefined : (keyProblem(key) ?? stray);
  const open = () => onOpen(`${key}/`);
  return (
    <Dialog
      title="New folder"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" disabled={name === "" || problem !== undefined} onClick={open}>
            Open
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== "" && problem === undefined) open();
        }}
      >
        <TextField
          label="Name"
          value={name}
          error={problem && `Invalid: ${problem}.`}
          hint="The folder is created when you upload a file."
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </form>
    </Dialog>
  );
}
