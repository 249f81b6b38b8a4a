import { plain } from "../../format/values";
import { useQuery } from "@tanstack/preact-query";
import { ChevronDown, ChevronUp, Copy } from "lucide-preact";
import { useEffect } from "preact/hooks";
import { Link } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { lineageQuery } from "../../api/queries";
import type { Cell, Column, Row, Table } from "../../api/types";
import { Button, IconButton } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { copyText, type GridColumn, type RowSource } from "../../components/grid";
import { asJson, shown } from "../../components/grid/value";
import { Skeleton } from "../../components/states";
import { Time } from "../../components/time";
import { count, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { withUnits } from "../../tables/units";
import { partitionOf, partitionText } from "./lineage";

/** Maximum number of listed sources. */
const SOURCES_SHOWN = 20;

interface Props {
  slug: string;
  table: Table;
  /** Number formats of columns. */
  units: ReadonlyMap<string, string>;
  rows: RowSource;
  index: number;
  onMove: (index: number) => void;
  onClose: () => void;
}

/** All fields of a row, with its lineage. */
export function RowDrawer({ slug, table, units, rows, index, onMove, onClose }: Props) {
  const row = rows.get(index);
  const need = rows.need;
  // The grid behind it may have requested other rows.
  useEffect(() => {
    if (!row) need?.(index, index + 1);
  }, [need, index, row, rows]);
  const names = table.schema.map(({ name }) => name);
  return (
    <Dialog
      title={`Row ${count(index + 1)}`}
      kind="drawer"
      inUrl
      onClose={onClose}
      actions={
        <>
          <Button icon={<Copy />} disabled={!row} onClick={() => row && void copyText(asJson(names, row), "the row")}>
            Copy as JSON
          </Button>
          <span class="grow" />
          <IconButton
            label="Previous row"
            icon={<ChevronUp />}
            disabled={index === 0}
            onClick={() => onMove(index - 1)}
          />
          <IconButton
            label="Next row"
            icon={<ChevronDown />}
            disabled={index + 1 >= rows.total}
            onClick={() => onMove(index + 1)}
          />
        </>
      }
    >
      {row ? (
        <dl class="data-fields">
          {withUnits(table.schema, units).map((column, at) => (
            <Field key={column.name} column={column} value={row[at] ?? null} />
          ))}
        </dl>
      ) : (
        <Skeleton lines={table.schema.length * 2} />
      )}
      {row &&
        (table.system ? (
          <RejectedFrom slug={slug} row={row} columns={table.schema} />
        ) : (
          <Origin slug={slug} table={table} row={row} />
        ))}
    </Dialog>
  );
}

function Field({ column, value }: { column: GridColumn; value: Cell }) {
  const { kind } = shown(value, column.type);
  const text = typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : plain(value);
  return (
    <div class="data-field">
      <dt>
        <span>{column.name}</span> <span class="dim">{column.type}</span>
      </dt>
      <dd>
        <span class={`data-value ${kind}`}>{value === null ? "null" : (column.format?.(value) ?? text)}</span>
        <IconButton label={`Copy ${column.name}`} icon={<Copy />} onClick={() => void copyText(text, column.name)} />
      </dd>
    </div>
  );
}

/** Sources of the row's partition. */
function Origin({ slug, table, row }: { slug: string; table: Table; row: Row }) {
  const total = useQuery(lineageQuery(slug, table.name, { limit: 1 }));
  // Files of rejected rows come first; the last file shows the partitioning.
  const last = Math.max(0, (total.data?.files_total ?? 0) - 1);
  const some = useQuery({
    ...lineageQuery(slug, table.name, { limit: 1, offset: last }),
    enabled: total.data !== undefined,
  });
  const sibling = some.data?.files.find((file) => !file.rejects);
  const partition = sibling && partitionOf(sibling.partition, table.schema, row);
  const found = useQuery({
    ...lineageQuery(slug, table.name, { partition: partition ?? "", limit: SOURCES_SHOWN }),
    enabled: partition !== undefined,
  });
  const error = total.error ?? some.error ?? found.error;
  const made = found.data?.files[0];
  return (
    <section class="data-origin">
      <h3>Lineage</h3>
      {error && <p class="secondary">{asFailure(error).message}</p>}
      {some.data && !sibling && <p class="secondary">The table has no files yet.</p>}
      {!error && !made && (some.isPending || found.isFetching) && <Skeleton lines={2} label="Lineage" />}
      {made && found.data && (
        <>
          <p class="secondary">
            {made.partition ? (
              <>
                Partition <code>{partitionText(made.partition)}</code>
              </>
            ) : (
              "The table"
            )}{" "}
            has rows from {counted(found.data.sources_total, "source")} in{" "}
            {counted(found.data.files_total, "Parquet file")}:
          </p>
          <ul class="data-sources">
            {found.data.sources.map((source) => (
              <li key={source.key}>
                <Link href={`~${routes.source(slug, source.key)}`}>{source.key}</Link>{" "}
                <span class="dim">
                  read <Time at={source.read_at} />
                </span>
              </li>
            ))}
          </ul>
          {found.data.sources_total > found.data.sources.length && (
            <p class="dim">and {count(found.data.sources_total - found.data.sources.length)} more</p>
          )}
          {found.data.files_total === 1 && made.job_id && (
            <p class="secondary">
              Written by run <Link href={`~${routes.job(slug, made.job_id)}`}>{made.job_id.slice(0, 13)}</Link>
            </p>
          )}
        </>
      )}
    </section>
  );
}

/** Rejected rows contain their line number. */
export function RejectedFrom({ slug, row, columns }: { slug: string; row: Row; columns: readonly Column[] }) {
  const of = (name: string) => row[columns.findIndex((column) => column.name === name)];
  const [source, line] = [of("source"), of("line")];
  if (typeof source !== "string") return null;
  return (
    <section class="data-origin">
      <h3>Lineage</h3>
      <p>
        <Link href={`~${routes.source(slug, source, typeof line === "number" ? line : null)}`}>
          Open {source}
          {typeof line === "number" && ` at line ${count(line)}`} in the lake
        </Link>
      </p>
    </section>
  );
}
