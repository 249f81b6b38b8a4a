import type { Cell, Previewed, Row } from "../../api/types";
import { Grid, type GridColumn, rowsInMemory } from "../../components/grid";
import { Note, Skeleton } from "../../components/states";
import { split } from "../../format/delimited";
import { isNumeric, written } from "../../format/values";
import { readable, RejectedRows, WouldFail, type Checked, type Reject } from "../../tables/checked";
import { itemOf, type Dialect } from "../../tables/dialect";
import type { DraftColumn } from "./draft";

interface Merged {
  rows: Row[];
  /** Rejected rows, by index. */
  refused: Map<number, Reject>;
}

const isPercent = (column?: DraftColumn): boolean => column?.numberFormat?.percent === true && isNumeric(column.type);

/** Merges rows and rejects in file order, as far as lines are known. Percentages are shown as such, as raw rows have them. */
export function merged(previewed: Previewed, dialect: Dialect, columns: DraftColumn[]): Merged {
  const rows: Row[] = [];
  const refused = new Map<number, Reject>();
  const rejects = [...(previewed.rejects ?? [])].sort((a, b) => a.line - b.line);
  const good = ((previewed.rows ?? []) as Row[]).map((row) =>
    row.map((value, cell) => (isPercent(columns[cell]) ? written(value, "percentage") || null : value)),
  );
  const header = itemOf(dialect, "header") === true;
  let line = Number(itemOf(dialect, "skip_rows")) + (header ? 2 : 1);
  let at = 0;
  for (const row of good) {
    for (let next = rejects[at]; next && next.line <= line; next = rejects[at]) {
      refused.set(rows.length, next);
      rows.push(rawRow(next, previewed, dialect, columns));
      at += 1;
      line += 1;
    }
    rows.push(row);
    line += 1;
  }
  if (previewed.whole || good.length === 0)
    for (const reject of rejects.slice(at)) {
      refused.set(rows.length, reject);
      rows.push(rawRow(reject, previewed, dialect, columns));
    }
  return { rows, refused };
}

/** The original values of a rejected row, below their columns. */
function rawRow(reject: Reject, { header }: Previewed, dialect: Dialect, columns: DraftColumn[]): Row {
  const cells =
    split(reject.raw, itemOf(dialect, "delimiter") as string, itemOf(dialect, "quote") as string | null)[0] ?? [];
  const places = new Map((header ?? []).map((cell, at) => [cell.toLowerCase(), at]));
  return columns.map(({ from }): Cell => {
    const at = typeof from === "number" ? from : places.get(([from].flat()[0] ?? "").toLowerCase());
    return at === undefined ? null : (cells[at] ?? null);
  });
}

interface Props {
  previewed: Previewed | undefined;
  checked: Checked | undefined;
  /** Whether the samples have every row of the source. */
  complete: boolean;
  stale: boolean;
  dialect: Dialect;
  columns: DraftColumn[];
}

/** Visible rows; the rest scrolls. */
const ROWS_SHOWN = 10;

/** Preview of the first rows and of rejected rows. */
export function PreviewStep({ previewed, checked, complete, stale, dialect, columns }: Props) {
  if (!previewed) return <Skeleton lines={8} label="Loading the preview" />;
  const failed = checked?.failure !== undefined && <WouldFail failure={checked.failure} />;
  if (previewed.failure) return failed || <Skeleton lines={8} label="Loading the preview" />;
  if (!previewed.columns) return <Note tone="warn">Fix the columns below to see a preview.</Note>;
  const taken = columns.filter(({ included }) => included);
  const { rows, refused } = merged(previewed, dialect, taken);
  const shown: GridColumn[] = previewed.columns.map(({ name, type }) => ({ name, type }));
  return (
    <div class="new-preview" aria-busy={stale}>
      <div class="new-grid">
        <Grid
          label="Preview of the first rows"
          columns={shown}
          rows={rowsInMemory(rows)}
          rowsShown={Math.min(ROWS_SHOWN, rows.length)}
          mark={markOf(refused, mostlyEmptyRows(rows), shown)}
        />
      </div>
      {failed}
      {checked && checked.rejected > 0 && <RejectedRows checked={checked} complete={complete} />}
      {checked && checked.rejected === 0 && checked.failure === undefined && (
        <p class="secondary">{readable(checked, complete)}</p>
      )}
    </div>
  );
}

/** Rows most of whose cells are empty, unlike the others: often a total or a note. */
export function mostlyEmptyRows(rows: Row[]): ReadonlySet<number> {
  const empty = rows.map((row) => row.filter((cell) => cell === null || cell === "").length / Math.max(1, row.length));
  const usual = [...empty].sort((a, b) => a - b)[Math.floor(empty.length / 2)] ?? 0;
  return new Set(empty.flatMap((part, at) => (part >= 0.5 && part > usual + 0.25 ? [at] : [])));
}

function markOf(refused: Map<number, Reject>, odd: ReadonlySet<number>, shown: GridColumn[]) {
  return (row: number, column: number): { tone: "bad" | "warn"; title: string } | undefined => {
    const reject = refused.get(row);
    if (!reject)
      return odd.has(row)
        ? { tone: "warn", title: "Most cells are empty. Is this a total or a footer line?" }
        : undefined;
    const here = reject.column === null || reject.column === shown[column]?.name;
    return { tone: here ? "bad" : "warn", title: `Line ${reject.line} would be rejected: ${reject.message}` };
  };
}

const LAST_ROWS = 5;

/** The last rows of the file, where totals and notes are. */
export function LastRows({
  previewed,
  dialect,
  columns,
}: Pick<Props, "dialect" | "columns"> & { previewed: Previewed }) {
  if (!previewed.columns) return null;
  const taken = columns.filter(({ included }) => included);
  const { rows, refused } = merged({ ...previewed, whole: true }, dialect, taken);
  const shown: GridColumn[] = previewed.columns.map(({ name, type }) => ({ name, type }));
  const from = Math.max(0, rows.length - LAST_ROWS);
  const mark = markOf(refused, mostlyEmptyRows(rows), shown);
  return (
    <>
      <h3>Last rows</h3>
      <div class="new-grid">
        <Grid
          label="Preview of the last rows"
          columns={shown}
          rows={rowsInMemory(rows.slice(from))}
          rowsShown={Math.min(LAST_ROWS, rows.length)}
          isNumbered={false}
          mark={(row, column) => mark(row + from, column)}
        />
      </div>
    </>
  );
}
