import { useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Failed } from "../../components/states";
import { named, useSelectedFiles, type Entry } from "../../uploads/entries";
import { Outcome, useBulk } from "../../uploads/use-bulk";
import { joinKey, keyProblem } from "../../uploads/keys";
import { useStrayProblem } from "./stray";

interface Props {
  /** Selected files and folders. */
  entries: Entry[];
  onClose: () => void;
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
