/** What a run would make of files before they are uploaded, by samples of them. */
import { loadConfig, type StoredMapping } from "../api/config";
import { asFailure } from "../api/failure";
import { client, lineageQuery } from "../api/queries";
import type { TableStatus } from "../api/types";
import { Button } from "../components/button";
import { MessageText } from "../components/message-text";
import { Note } from "../components/states";
import { count, counted } from "../format/number";
import { rejectWords } from "../format/reject";
import { withSamples } from "../uploads/staging";
import { headersOfTable, rejectsAllowed, tooManyRejects, withMapping } from "./changes";
import { checkedOf, readable, WouldFail, type Checked } from "./checked";
import type { FirstRows } from "./copies";
import { previewOfSample } from "./preview";

/** Rejected rows that are shown. */
const REJECTS_SHOWN = 3;
/** Rows that are compared with those of the table. */
const ROWS_COMPARED = 5;

export type RowCounts = Pick<TableStatus, "rows" | "rows_rejected">;

export interface UploadCheck {
  checked: Checked;
  /** Headers that the table doesn't read, as the files have them. */
  added: string[];
  allowed: ReturnType<typeof rejectsAllowed>;
  /** Rows of files of the table that the upload replaces. */
  replaced: RowCounts;
  /** Whether every row was checked. */
  complete: boolean;
  /** Of each file. */
  firstRows: FirstRows[];
}

/** A change of a table's mapping with which files are uploaded. */
export interface Fix {
  /** What it does, for people. */
  words: string[];
  apply: (mapping: StoredMapping) => StoredMapping;
}

/**
 * `placeOf`: where files of a name go in the pipeline's folder; `replaced`: keys in it of files that the upload replaces;
 * `change`: of the mapping, with the upload. @throws ApiFailure
 */
export async function checkUpload(
  slug: string,
  table: string,
  placeOf: (name: string) => string,
  files: readonly File[],
  replaced: readonly string[],
  change: (mapping: StoredMapping) => StoredMapping,
): Promise<UploadCheck | undefined> {
  const { config: stored } = await loadConfig(slug);
  const config = withMapping(stored, table, change);
  const mapping = config.mappings?.find((one) => one.table === table);
  if (!mapping || files.length === 0) return undefined;
  return await withSamples(files, async (samples) => {
    const previews = await Promise.all(
      samples.map((sample) => previewOfSample(sample, placeOf(sample.name), { config, table, limit: ROWS_COMPARED })),
    );
    const checked = checkedOf(samples, previews);
    const known = headersOfTable(mapping);
    const headers = previews.flatMap(({ header }) => header ?? []).filter((name) => name !== "");
    const added = [...new Set(headers)].filter((name) => !known.has(name.toLowerCase()));
    const complete = samples.length === files.length && samples.every(({ whole }) => whole);
    // Each piece of a large file is a sample.
    const firstRows = samples.flatMap(({ name }, at) => {
      const { columns, rows } = previews[at] ?? {};
      return samples.findIndex((one) => one.name === name) === at
        ? [{ file: name, columns: columns ?? [], rows: rows ?? [] }]
        : [];
    });
    const gone = await rowsOf(slug, table, replaced);
    return checked && { checked, added, allowed: rejectsAllowed(mapping), replaced: gone, complete, firstRows };
  });
}

/** The rows of a table that stay when others go. */
export const rowsWithout = (table: RowCounts, gone?: RowCounts): RowCounts => ({
  rows: table.rows - (gone?.rows ?? 0),
  rows_rejected: table.rows_rejected - (gone?.rows_rejected ?? 0),
});

/** Rows of sources of a table; a source that no run has read has none. */
async function rowsOf(slug: string, table: string, keys: readonly string[]): Promise<RowCounts> {
  const found = await Promise.all(
    keys.map((source) =>
      client.fetchQuery(lineageQuery(slug, table, { source, limit: 1 })).catch((error: unknown) => {
        if (asFailure(error).status === 404) return undefined;
        throw error;
      }),
    ),
  );
  const sources = found.flatMap((one) => one?.sources ?? []);
  return {
    rows: sources.reduce((sum, one) => sum + one.rows_written, 0),
    rows_rejected: sources.reduce((sum, one) => sum + one.rows_rejected, 0),
  };
}

interface RejectsProps {
  checked: Checked;
  complete: boolean;
  fails: boolean;
  table: string;
}

function Rejects({ checked, complete, fails, table }: RejectsProps) {
  const { rejected, read, rejects, files } = checked;
  const shown = rejects.slice(0, REJECTS_SHOWN);
  return (
    <Note tone="warn">
      {counted(rejected, "row")} of {count(read)}
      {complete ? "" : " checked"} would be rejected
      {fails
        ? `, more than allowed, so the run would fail and ${table} would stay as it is`
        : `, and not be in ${table}`}
      {shown.length > 0 ? ":" : "."}
      <ul>
        {shown.map(({ file, line, column, value, reason, message, piece }) => (
          <li key={`${file} ${line} ${column}`}>
            {files > 1 && `${file}, `}
            {!piece && `line ${count(line)}, `}
            {column !== null && `${column}: `}
            <MessageText text={rejectWords({ reason, value, message })} />
          </li>
        ))}
        {rejected > shown.length && <li class="dim">and {count(rejected - shown.length)} more</li>}
      </ul>
    </Note>
  );
}

/**
 * `ignored`: headers that the table has long left out; `copies`: files whose first rows the table has; `onFix`: proposes
 * changes that read more.
 */
export function UploadForecast({
  table,
  check,
  ignored,
  copies,
  onFix,
}: {
  table: TableStatus;
  check: UploadCheck;
  ignored: string[];
  copies: string[];
  onFix: (() => void) | undefined;
}) {
  const { checked, replaced } = check;
  const kept = rowsWithout(table, replaced);
  const left = new Set(ignored.map((name) => name.toLowerCase()));
  const added = check.added.filter((name) => !left.has(name.toLowerCase()));
  return (
    <>
      {added.length > 0 && checked.failure === undefined && (
        <Note>
          {counted(added.length, "new column")}: {added.join(", ")}. {table.name} doesn&apos;t have{" "}
          {added.length === 1 ? "it" : "them"} yet. Once the upload is loaded, the Overview offers to add{" "}
          {added.length === 1 ? "it" : "them"}.
        </Note>
      )}
      {copies.length > 0 && (
        <Note tone="warn">
          {table.name} already has the first rows of {copies.join(", ")}. If{" "}
          {copies.length === 1 ? "it is" : "they are"} a copy of files that are there, the rows will count twice.
        </Note>
      )}
      {checked.failure !== undefined && <WouldFail failure={checked.failure} tone="warn" />}
      {checked.rejected === 0 && checked.failure === undefined && (
        <p class="secondary">{readable(checked, check.complete)}</p>
      )}
      {checked.rejected > 0 && (
        <Rejects
          checked={checked}
          complete={check.complete}
          fails={tooManyRejects(kept, checked, false, check.allowed) !== undefined}
          table={table.name}
        />
      )}
      {onFix && (checked.rejected > 0 || checked.failure !== undefined) && (
        <div class="row">
          <Button onClick={onFix}>Fix…</Button>
        </div>
      )}
    </>
  );
}
