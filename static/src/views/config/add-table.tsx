import { useQuery } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../api/client";
import { asFailure } from "../../api/failure";
import type { Inferred } from "../../api/types";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Empty, Failed, Note, Skeleton } from "../../components/states";
import { bytes, counted } from "../../format/number";
import { emptyCells, typeWithName } from "../../format/types";
import { routes } from "../../browser/routes";
import { mappingHeads } from "./effect";
import { matcher } from "../../uploads/globs";
import { isSource } from "../../uploads/source-names";
import { filesQuery, prefixOf, type PipelineFile } from "./service";

const SHOWN_MAX = 200;

interface FileListProps {
  files: PipelineFile[];
  readBy: (name: string) => string | undefined;
  busy: string | undefined;
  onChoose: (file: PipelineFile) => void;
}

function FileList({ files, readBy, busy, onChoose }: FileListProps) {
  return (
    <div class="table-box">
      <table class="table stacks">
        <thead>
          <tr>
            <th>File</th>
            <th class="num">Size</th>
            <th>
              <span class="for-readers">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {files.slice(0, SHOWN_MAX).map((file) => {
            const table = readBy(file.name);
            return (
              <tr key={file.key}>
                <td>
                  <code>{file.name}</code> {table && <span class="secondary">read by {table}</span>}
                </td>
                <td class="num" data-label="Size">
                  {bytes(file.size)}
                </td>
                <td>
                  <Button
                    busy={busy === file.key}
                    disabled={busy !== undefined && busy !== file.key}
                    aria-label={`Generate a table from ${file.name}`}
                    onClick={() => onChoose(file)}
                  >
                    {" "}
                    Generate{" "}
                  </Button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Proposal({ inferred }: { inferred: Inferred }) {
  const { table, files, columns, warnings } = inferred;
  return (
    <>
      <p>
        Table <code>{table}</code> with {counted(columns.length, "column")}, read from <code>{files.join(", ")}</code>.
      </p>
      {warnings.map((warning) => (
        <Note key={warning} tone="warn">
          {warning}
        </Note>
      ))}
      <div class="table-box">
        <table class="table">
          <thead>
            <tr>
              <th>Column</th>
              <th>Type</th>
              <th>From</th>
              <th>Empty cells</th>
            </tr>
          </thead>
          <tbody>
            {columns.map(({ name, type, from, nullable }) => (
              <tr key={name}>
                <td>
                  <code>{name}</code>
                </td>
                <td>{typeWithName(type)}</td>
                <td>{String(from)}</td>
                <td>{emptyCells(nullable)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Props {
  slug: string;
  config: unknown;
  onAdd: (mapping: Record<string, unknown>) => void;
  onClose: () => void;
}

/** Generates a mapping from a CSV of the pipeline and adds it to the config. */
export function AddTable({ slug, config, onAdd, onClose }: Props) {
  const files = useQuery(filesQuery(slug));
  const [filter, setFilter] = useState("");
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [inferred, setInferred] = useState<Inferred>();
  const readers = useMemo(
    () => mappingHeads(config).map(({ table, files: globs }) => ({ table, is: matcher(globs) })),
    [config],
  );
  const readBy = (name: string) => readers.find(({ is }) => is(name))?.table;
  const wanted = (files.data?.files ?? []).filter(({ name }) => isSource(name) && name.includes(filter));
  wanted.sort((a, b) => Number(readBy(a.name) !== undefined) - Number(readBy(b.name) !== undefined));

  const propose = async (file: PipelineFile) => {
    setBusy(file.key);
    setError(undefined);
    try {
      const params = { path: { pipeline: slug }, query: { key: file.key } };
      setInferred(await ask(api.POST("/api/p/{pipeline}/infer", { params })));
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(undefined);
    }
  };

  return (
    <Dialog
      title="Add table from CSV"
      kind="wide"
      onClose={onClose}
      actions={
        inferred ? (
          <>
            <Button onClick={() => setInferred(undefined)}>Choose another file</Button>
            <Button variant="primary" onClick={() => onAdd(inferred.mapping as Record<string, unknown>)}>
              Add to config
            </Button>
          </>
        ) : (
          <Button onClick={onClose}>Cancel</Button>
        )
      }
    >
      {inferred ? (
        <Proposal inferred={inferred} />
      ) : files.error ? (
        <Failed title="Couldn't load the files" error={files.error} onRetry={() => void files.refetch()} />
      ) : !files.data ? (
        <Skeleton lines={6} />
      ) : files.data.files.every(({ name }) => !isSource(name)) ? (
        <Empty
          title="No CSVs in this pipeline's folder yet"
          actions={<Link href={`~${routes.lake(prefixOf(slug))}`}>Upload CSVs</Link>}
        />
      ) : (
        <>
          <TextField
            label="Name contains"
            value={filter}
            hint={files.data.more ? "Not all files are listed." : undefined}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
          {error !== undefined && <Note tone="bad">Couldn't generate a table: {asFailure(error).message}</Note>}
          <FileList files={wanted} readBy={readBy} busy={busy} onChoose={(file) => void propose(file)} />
        </>
      )}
    </Dialog>
  );
}
