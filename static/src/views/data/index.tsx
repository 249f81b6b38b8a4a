import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link, Redirect, useParams } from "wouter-preact";
import { isActive, jobsQuery, keys, lineageQuery, rowsQuery, statusQuery, tablesQuery } from "../../api/queries";
import type { Column, ConfigStatus, Table } from "../../api/types";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { routes } from "../../browser/routes";
import { useShortcuts } from "../../browser/shortcuts";
import { ExtraColumnsNotice, StateNotice } from "../../shell/state-notice";
import { useRun } from "../../shell/pipeline";
import { askForFiles } from "../../shell/upload-request";
import { EditColumn } from "../../tables/edit-column";
import { Button } from "../../components/button";
import { counted } from "../../format/number";
import { unreadable } from "../../runs/table-state";
import { useAddress, type Address } from "./url-state";
import { ChartStrip } from "./chart-strip";
import { TableHead, tabsOf } from "./head";
import { LINEAGE_PAGE, Partitions } from "./partitions";
import { Rejected } from "./rejected";
import { Rows } from "./rows";
import { Schema } from "./schema";
import { Sources } from "./sources";
import { Versions } from "./versions";
import { TableList } from "./table-list";
import "./data.css";

const NO_COLUMNS: Column[] = [];

/** Tables of a pipeline: rows, schema, lineage and rejected rows. */
export default function DataView({ slug }: { slug: string }) {
  const { table: name } = useParams<{ table?: string }>();
  const { data, error, refetch } = useQuery(tablesQuery(slug));
  const tables = data?.tables ?? [];
  const table = tables.find((one) => one.name === name);
  const first = tables.find((one) => !one.system) ?? tables[0];
  return (
    <Page title={`${name ?? "Data"} · ${slug}`} full>
      {error && !data ? (
        <Failed title="Couldn't load the tables" error={error} onRetry={() => void refetch()} />
      ) : !data ? (
        <div class="data">
          <div class="data-list">
            <Skeleton lines={5} label="Tables" />
          </div>
          <div class="data-main data-pad">
            <Skeleton lines={16} label="Rows" />
          </div>
        </div>
      ) : !first ? (
        <NoTables slug={slug} config={data.config} />
      ) : name === undefined ? (
        <Redirect to={`~${routes.data(slug, first.name)}`} replace />
      ) : (
        <div class="data">
          <TableList slug={slug} tables={tables} chosen={name} />
          {table ? (
            <TableView key={table.name} slug={slug} table={table} />
          ) : (
            <Empty
              title={`Table ${name} not found`}
              actions={
                <Link class="button" href={`~${routes.data(slug, first.name)}`}>
                  Show {first.name}
                </Link>
              }
            >
              Clean runs delete tables that are no longer in the config.
            </Empty>
          )}
        </div>
      )}
    </Page>
  );
}

/** Empty state by the state of the config. */
function NoTables({ slug, config }: { slug: string; config: ConfigStatus }) {
  const [title, words] =
    config.state === "invalid"
      ? [
          unreadable(config) ? "The config can't be read" : "The config has problems",
          config.problems?.[0]?.message ?? "It defines no tables.",
        ]
      : config.state === "missing"
        ? ["No config yet", "The config defines which CSVs become which tables."]
        : ["No tables yet", "The config defines no tables. Add one to turn CSVs into a table."];
  return (
    <Empty
      title={title}
      actions={
        <>
          <Link class="button" href={`~${routes.config(slug)}`}>
            Open config
          </Link>
          <Button onClick={() => askForFiles(slug)}>Upload CSVs</Button>
        </>
      }
    >
      {words}
    </Empty>
  );
}

/** Rejected rows on the first page of sources; enough to show that there are some. */
function useRejected(slug: string, table: Table): number | undefined {
  const { data } = useQuery({
    ...lineageQuery(slug, table.name, { limit: LINEAGE_PAGE, offset: 0 }),
    enabled: !table.system,
  });
  return data?.sources.reduce((sum, source) => sum + source.rows_rejected, 0);
}

/**
 * The table with the number of rows that its grid shows: tables and rows are separate answers, and a run may publish in
 * between. The older one of both is loaded again.
 */
function useShownTable(slug: string, listed: Table, { sortText, filterTexts, asOf, tab }: Address): Table {
  const cache = useQueryClient();
  // Without the grid, its last answer may be older than the table.
  const isWhole = tab === "rows" && filterTexts.length === 0 && asOf === undefined;
  const { data } = useQuery({ ...rowsQuery(slug, listed.name, { sort: sortText, filters: [] }), enabled: false });
  const total = isWhole ? data?.total : undefined;
  useEffect(() => {
    if (total !== undefined && total !== listed.rows)
      void cache.invalidateQueries({ queryKey: keys.tables(slug), exact: true });
    // Once for each answer with rows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [total]);
  useEffect(() => {
    if (total !== undefined && total !== listed.rows)
      void cache.invalidateQueries({ queryKey: [...keys.table(slug, listed.name), "rows"] });
    // Once for each answer with tables.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [listed.rows]);
  return total === undefined || total === listed.rows ? listed : { ...listed, rows: total };
}

function TableView({ slug, table: listed }: { slug: string; table: Table }) {
  const address = useAddress(listed.schema.length > 0 ? listed.schema : NO_COLUMNS);
  const table = useShownTable(slug, listed, address);
  const rejected = useRejected(slug, table);
  const tab = tabsOf(table).includes(address.tab) ? address.tab : "rows";
  const main = useRef<HTMLDivElement>(null);
  const { run } = useRun(slug);
  const [edited, setEdited] = useState<string>();
  const onEdit = table.system ? undefined : setEdited;
  useShortcuts([
    {
      keys: "/",
      does: "Filter the first column",
      run: () => main.current?.querySelector<HTMLElement>(".data-filter input")?.focus(),
    },
  ]);
  return (
    <div class="data-main" ref={main}>
      <TableHead slug={slug} table={table} tab={tab} address={address} rejected={rejected} />
      <StateNotice slug={slug} table={table.name} />
      <ExtraColumnsNotice slug={slug} table={table} />
      {address.chart && table.rows > 0 && <ChartStrip slug={slug} table={table} address={address} />}
      {tab === "rows" &&
        (table.rows === 0 && address.filterTexts.length === 0 && address.asOf === undefined ? (
          <NoRows slug={slug} table={table} rejected={rejected} />
        ) : (
          <Rows slug={slug} table={table} address={address} onEdit={onEdit} />
        ))}
      {tab === "schema" && <Schema slug={slug} table={table} onEdit={onEdit} onRun={() => void run(false)} />}
      {tab === "partitions" && <Partitions slug={slug} table={table} address={address} />}
      {tab === "sources" && <Sources slug={slug} table={table} address={address} />}
      {tab === "rejected" && <Rejected slug={slug} table={table} address={address} />}
      {tab === "versions" && <Versions slug={slug} table={table} address={address} />}
      {edited !== undefined && (
        <EditColumn
          slug={slug}
          table={table.name}
          column={edited}
          onClose={() => setEdited(undefined)}
          onRun={() => void run(false)}
        />
      )}
    </div>
  );
}

function NoRows({ slug, table, rejected }: { slug: string; table: Table; rejected: number | undefined }) {
  const jobs = useQuery(jobsQuery(slug));
  const { data: status } = useQuery(statusQuery(slug));
  const pending = status?.tables.find(({ name }) => name === table.name)?.pending.count ?? 0;
  const active = jobs.data?.jobs.find(isActive);
  const lake = <Button onClick={() => askForFiles(slug)}>Upload CSVs</Button>;
  const config = (
    <Link class="button" href={`~${routes.config(slug)}`}>
      Check its globs
    </Link>
  );
  if (active)
    return (
      <Empty
        title={`Run in progress: ${table.name} has no rows yet`}
        actions={
          <Link class="button" href={`~${routes.job(slug, active.job_id)}`}>
            Watch the run
          </Link>
        }
      >
        Rows appear when the run has published the table.
      </Empty>
    );
  if (rejected)
    return (
      <Empty
        title={`All rows of ${table.name} were rejected or filtered`}
        actions={
          <Link class="button" href={`~${routes.data(slug, table.name, { tab: "rejected" })}`}>
            Show reasons
          </Link>
        }
      >
        Its sources were read, but no rows were written.
      </Empty>
    );
  // The notice above names the files, and what they wait for.
  if (pending > 0)
    return (
      <Empty title={`${table.name} has no rows yet`}>
        {counted(pending, "file")} of the table {pending === 1 ? "isn't" : "aren't"} loaded yet.
      </Empty>
    );
  return (
    <Empty title={`${table.name} has no rows yet`} actions={jobs.data && [lake, config]}>
      The table reads CSVs that match its globs. Upload CSVs, then run the pipeline.
    </Empty>
  );
}
