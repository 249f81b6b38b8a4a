import { ChartLine, Download, Terminal } from "lucide-preact";
import { useQuery } from "@tanstack/preact-query";
import { useEffect, useRef } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { statusQuery } from "../../api/queries";
import type { Table } from "../../api/types";
import { Button } from "../../components/button";
import { Menu } from "../../components/menu";
import { bytes, count, counted } from "../../format/number";
import { routes, RUN_IMMEDIATELY } from "../../browser/routes";
import { TABS, type Address, type Tab } from "./url-state";
import { History } from "./history";
import { MakeDashboard } from "./make-dashboard";
import { download, downloads, FORMATS, type Format } from "../../components/download";
import { rejectedFilters } from "./rejected-filters";
import { statement } from "./statement";

/** LIMIT of the query that is opened for a table. */
const QUERY_LIMIT = 100;
const WORDS: Record<Tab, string> = {
  rows: "Rows",
  schema: "Schema",
  partitions: "Partitions",
  sources: "Sources",
  rejected: "Rejected",
  versions: "Versions",
};

/** Tabs of a table; system tables have no sources of their own. */
export const tabsOf = (table: Table): readonly Tab[] => (table.system ? ["rows", "schema"] : TABS);

/** Name, counts, actions and tabs of a table. */
export function TableHead({
  slug,
  table,
  tab,
  address,
  rejected,
}: {
  slug: string;
  table: Table;
  tab: Tab;
  address: Address;
  rejected: number | undefined;
}) {
  const [, go] = useLocation();
  const { filters, sort } = address;
  const chosen = { table: table.name, columns: table.schema, filters, sort };
  const narrowed = address.filterTexts.length > 0;
  const { data: status } = useQuery(statusQuery(slug));
  const csvs = status?.tables.find(({ name }) => name === table.name)?.sources;
  const tabs = useRef<HTMLElement>(null);
  useEffect(
    () => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    // The number of rejected rows, which comes later, moves the tabs after it.
    [tab, rejected],
  );
  // The tab's own rows are downloaded.
  const ofRejected = tab === "rejected" && rejected !== undefined && rejected > 0;
  const rows = ofRejected
    ? { name: `${table.name}-rejected`, sql: statement(rejectedFilters(table.name, address)) }
    : { name: table.name, sql: statement(chosen), size: table.bytes };
  const start = (format: Format) => void download({ slug, format, ...rows });
  const hint = ofRejected
    ? address.source || address.reason
      ? "Rejected rows as filtered below"
      : "All rejected rows"
    : narrowed
      ? "Rows that match the filters"
      : counted(table.rows, "row");
  return (
    <header class="data-head">
      <div class="row wrap">
        <h1 class="cut data-name" title={table.name}>
          {table.name}
        </h1>
        {!table.system && (tab === "rows" || tab === "sources") && (
          <History slug={slug} table={table} address={address} />
        )}
        <Button
          icon={<ChartLine />}
          variant="quiet"
          aria-pressed={address.chart}
          onClick={() => address.set({ chart: address.chart ? undefined : "1" }, { replace: true })}
        >
          Chart
        </Button>
        <Button
          icon={<Terminal />}
          variant="quiet"
          aria-label="Query this table"
          onClick={() =>
            go(`~${routes.query(slug, { sql: statement(chosen, QUERY_LIMIT) })}`, { state: RUN_IMMEDIATELY })
          }
        >
          <span>
            Query<span class="data-wide"> this table</span>
          </span>
        </Button>
        {!table.system && table.rows > 0 && <MakeDashboard slug={slug} table={table} />}
        <Menu
          label={ofRejected ? `Download rejected rows of ${table.name}` : `Download ${table.name}`}
          look="quiet"
          button={
            <>
              <Download />
              Download
            </>
          }
          items={FORMATS.map(({ format, label }) => ({
            label,
            hint,
            onSelect: () => start(format),
          }))}
        />
      </div>
      <div class="data-head-foot">
        <nav ref={tabs} class="data-tabs" aria-label={`About ${table.name}`}>
          {tabsOf(table).map((one) => (
            <Link
              key={one}
              href={`~${routes.data(slug, table.name, one === "rows" ? {} : { tab: one })}`}
              aria-current={one === tab ? "page" : undefined}
            >
              {WORDS[one]}
              {one === "rejected" && rejected !== undefined && rejected > 0 && (
                <span class="data-count">{count(rejected)}</span>
              )}
            </Link>
          ))}
        </nav>
        <span class="secondary data-facts">
          {counted(table.rows, "row")}
          <span class="data-facts-more">
            {` · ${counted(table.schema.length, "column")}`}
            {csvs !== undefined && ` · ${counted(csvs, "CSV")}`}
            {` · ${counted(table.file_count, "Parquet file")}`}
          </span>
          {` · ${bytes(table.bytes)}`}
        </span>
      </div>
      <Downloads slug={slug} />
    </header>
  );
}

function Downloads({ slug }: { slug: string }) {
  const own = downloads.value.filter((one) => one.slug === slug);
  if (own.length === 0) return null;
  return (
    <ul class="data-downloads" aria-label="Downloads">
      {own.map((one) => (
        <li key={one.id} class="row">
          <span class="grow cut">
            Downloading {one.name}: <span class="num">{bytes(one.bytes)}</span>
          </span>
          <Button onClick={one.cancel}>Cancel</Button>
        </li>
      ))}
    </ul>
  );
}
