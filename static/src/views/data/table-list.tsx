import { Search } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { Table } from "../../api/types";
import { SelectField, TextField } from "../../components/field";
import { Badge } from "../../components/status";
import { bytes, compact, counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { TableBadge } from "../../shell/state-notice";

/** From this number of tables on, a search field is shown. */
const SEARCH_FROM = 8;

/** Tables of the pipeline; a select on narrow screens. */
export function TableList({ slug, tables, chosen }: { slug: string; tables: Table[]; chosen: string }) {
  const [search, setSearch] = useState("");
  const [, go] = useLocation();
  const wanted = search.trim().toLowerCase();
  const found = tables.filter(({ name }) => name.toLowerCase().includes(wanted));
  return (
    <>
      <div class="data-choose">
        <SelectField
          label="Table"
          bare
          value={chosen}
          onChange={(event) => go(`~${routes.data(slug, event.currentTarget.value)}`)}
        >
          {!tables.some(({ name }) => name === chosen) && <option value={chosen}>Choose a table</option>}
          {tables.map(({ name, rows }) => (
            <option key={name} value={name}>
              {name} · {counted(rows, "row")}
            </option>
          ))}
        </SelectField>
      </div>
      <nav class="data-list" aria-label="Tables">
        {tables.length >= SEARCH_FROM && (
          <div class="data-search">
            <Search aria-hidden="true" />
            <TextField
              label="Search tables"
              bare
              type="search"
              placeholder={`Search ${counted(tables.length, "table")}`}
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </div>
        )}
        <ul>
          {found.map((table) => (
            <li key={table.name}>
              <Link
                href={`~${routes.data(slug, table.name)}`}
                aria-current={table.name === chosen ? "page" : undefined}
              >
                <span class="row">
                  <span class="cut grow">{table.name}</span>
                  {table.system && <Badge title="Rejected rows of all tables, written by every run">all tables</Badge>}
                </span>
                <span
                  class="data-list-facts"
                  title={`${counted(table.rows, "row")}, ${counted(table.file_count, "Parquet file")}`}
                >
                  {compact(table.rows)} {table.rows === 1 ? "row" : "rows"} · {bytes(table.bytes)}
                </span>
                {!table.system && <TableBadge slug={slug} table={table.name} />}
              </Link>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="dim data-none">No tables match {search}.</p>}
      </nav>
    </>
  );
}
