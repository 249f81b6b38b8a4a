import { useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { loadConfig, saveConfig } from "../api/config";
import { lineageQuery } from "../api/queries";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Failed, Note, Skeleton } from "../components/states";
import { toast } from "../components/toasts";
import { withRemedy } from "../format/remedies";
import { nameOf } from "../uploads/keys";
import { list } from "./changes";
import { newPathColumn, pathColumnOf } from "./path-columns";
import { PathFields } from "./path-fields";

interface Props {
  slug: string;
  table: string;
  onClose: () => void;
  onRun: () => void;
}

/** Files whose names are looked at. */
const FILES_MAX = 100;

/** Adds a column from the names of a table's files to its config. */
export function AddPathColumn(props: Props) {
  const { slug, table, onClose } = props;
  const { data, error, refetch } = useQuery(lineageQuery(slug, table, { limit: FILES_MAX }));
  if (data) return <Form {...props} names={data.sources.map(({ key }) => nameOf(key))} />;
  return (
    <Dialog title="Add column from file names" onClose={onClose}>
      {error ? (
        <Failed title="Couldn't find the table's files" error={error} onRetry={() => void refetch()} />
      ) : (
        <Skeleton lines={4} label="Looking for the files" />
      )}
    </Dialog>
  );
}

function Form({ slug, table, names, onClose, onRun }: Props & { names: string[] }) {
  const [first] = useState(() => newPathColumn(names));
  const [column, setColumn] = useState(first);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const save = async () => {
    setBusy(true);
    try {
      const { config, etag } = await loadConfig(slug);
      const mappings = list(config.mappings).map((one) => {
        const mapping = one as { table?: unknown; columns?: unknown };
        return mapping.table === table
          ? { ...mapping, columns: [...list(mapping.columns), pathColumnOf(column)] }
          : mapping;
      });
      await saveConfig(slug, { ...config, mappings }, etag);
      toast.done(`Added ${column.name} to ${table}`);
      onClose();
      onRun();
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Add column from file names"
      unsaved={column === first ? undefined : `the column ${column.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" busy={busy} onClick={() => void save()}>
            Save and run
          </Button>
        </>
      }
    >
      <div class="stack">
        <PathFields names={names} column={column} onChange={setColumn} />
        <p class="secondary">The run reads all files of {table} again.</p>
        {failure !== undefined && <Note tone="bad">The config wasn’t saved: {withRemedy(failure)}</Note>}
      </div>
    </Dialog>
  );
}
