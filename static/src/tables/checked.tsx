/** Predicts a run's outcome for files from their previews. */
import { withFileNames } from "../api/drafts";
import type { Previewed } from "../api/types";
import { MessageText } from "../components/message-text";
import { Note } from "../components/states";
import { count, counted } from "../format/number";
import { rejectWords } from "../format/reject";
import type { RejectedByColumn } from "./changes";

export type Reject = NonNullable<Previewed["rejects"]>[number];

/** The predicted outcome of a run for the samples of a table. */
export interface Checked {
  read: number;
  rejected: number;
  rejects: (Reject & { file: string; piece: boolean })[];
  /** Files that were read. */
  files: number;
  /** The first failure that a run would have. */
  failure: string | undefined;
}

/** The previews of all samples, summed up; undefined until all are there. */
export function checkedOf(
  samples: readonly { name: string; piece?: string }[],
  previews: readonly (Previewed | undefined)[],
): Checked | undefined {
  const checked: Checked = { read: 0, rejected: 0, rejects: [], files: 0, failure: undefined };
  const names = new Set<string>();
  for (const [at, { name, piece }] of samples.entries()) {
    const previewed = previews[at];
    if (!previewed) return undefined;
    names.add(name);
    const { failure, counts, rejects } = previewed;
    if (failure) {
      const message = withFileNames(failure.message, [], name);
      const place = message.includes(`\`${name}\``) ? "" : `${name}: `;
      checked.failure ??= `${place}${message}${failure.detail ? ` (${failure.detail})` : ""}`;
    }
    checked.read += counts?.rows_read ?? 0;
    checked.rejected += counts?.rows_rejected ?? 0;
    for (const reject of rejects ?? []) checked.rejects.push({ ...reject, file: name, piece: piece !== undefined });
  }
  return { ...checked, files: names.size };
}

/** Counts rejects by column, and records that aren't rows. */
export function rejectedIn({ rejects, rejected, read }: Checked): [RejectedByColumn, number] {
  const columns = new Map<string, { count: number; nulls: boolean; unread: Checked["rejects"] }>();
  let refused = 0;
  for (const reject of rejects) {
    const { column } = reject;
    if (column === null) refused += 1;
    else {
      const { count: before, nulls, unread } = columns.get(column) ?? { count: 0, nulls: false, unread: [] };
      const isNull = reject.reason === "null_not_allowed";
      columns.set(column, {
        count: before + 1,
        nulls: nulls || isNull,
        unread: isNull ? unread : [...unread, reject],
      });
    }
  }
  const whyOf = ([first, ...more]: Checked["rejects"]) => {
    if (!first) return undefined;
    // Not all rejects may be listed.
    const share = rejects.length < rejected ? "some rows" : `${count(more.length + 1)} of ${counted(read, "row")}`;
    return `${share} can't be read${more.length > 0 ? ", the first because" : ":"} ${rejectWords(first).replace(/\.$/, "")}`;
  };
  return [new Map([...columns].map(([name, one]) => [name, { ...one, why: whyOf(one.unread) }])), refused];
}

/** The text for a table without rejected rows. */
export function readable({ read, files }: Checked, complete: boolean): string {
  if (read === 0 && complete) return files > 1 ? "The files have no rows." : "The file has a header and no rows.";
  const rows = counted(read, "row");
  const of = files > 1 ? ` of ${counted(files, "file")}` : "";
  return complete ? `All ${rows}${of} can be read.` : `Checked ${rows}${of}: all can be read. Others weren't checked.`;
}

/** The failure that a run would have. */
export function WouldFail({ failure, tone = "bad" }: { failure: string; tone?: "warn" | "bad" }) {
  return (
    <Note tone={tone}>
      A run would fail: <MessageText text={failure} />
    </Note>
  );
}

/** `2 of 259 checked rows`. `complete`: these are all rows. */
export const ofChecked = (some: number, read: number, complete: boolean): string =>
  `${count(some)} of ${counted(read, complete ? "row" : "checked row")}`;

/** Rejected rows with their reasons. `title`: of rows that aren't rejected; `complete`: every row was checked. */
export function RejectedRows({
  checked,
  title,
  complete = true,
}: {
  checked: Checked;
  title?: string;
  complete?: boolean;
}) {
  const { rejects, rejected, read, files } = checked;
  return (
    <>
      <h3>{title ?? `${ofChecked(rejected, read, complete)} would be rejected`}</h3>
      <div class="table-box rejected-rows" tabIndex={0} role="region" aria-label="Rejected rows">
        <table class="table stacks">
          <thead>
            <tr>
              {files > 1 && <th>File</th>}
              <th class="num">Line</th>
              <th>Column</th>
              <th>Value</th>
              <th>Reason</th>
              <th>Original row</th>
            </tr>
          </thead>
          <tbody>
            {rejects.map(({ file, piece, line, column, value, reason, message, raw, byte_offset }) => (
              <tr key={`${file}/${piece}/${byte_offset}`}>
                {files > 1 && <td>{file}</td>}
                <td class="num" data-label="Line">
                  {piece ? <span class="dim">–</span> : line}
                </td>
                <td data-label="Column">{column ?? "–"}</td>
                <td class="whole" data-label="Value">
                  {value === null ? <span class="dim">–</span> : <code>{value}</code>}
                </td>
                <td class="whole" title={message}>
                  <MessageText text={rejectWords({ reason, value, message })} />
                </td>
                <td class="whole" data-label="Original row">
                  <code>{raw}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {rejected > rejects.length && (
          <p class="dim">and {counted(rejected - rejects.length, "more row", "more rows")}</p>
        )}
      </div>
    </>
  );
}
