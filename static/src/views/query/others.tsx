import { useSignal } from "@preact/signals";
import { useQuery } from "@tanstack/preact-query";
import { ChevronDown, ChevronRight } from "lucide-preact";
import { pipelinesQuery, tablesQuery } from "../../api/queries";
import { TextField } from "../../components/field";
import { compact, counted } from "../../format/number";
import { identifier } from "../../format/sql";

/** Most pipelines listed; the search finds the others. */
const LISTED_MAX = 20;

/** Tables of other pipelines; a click inserts the name with its pipeline's. */
export function OtherPipelines({ slug, onInsert }: { slug: string; onInsert: (text: string) => void }) {
  const { data } = useQuery(pipelinesQuery());
  const open = useSignal(false);
  const search = useSignal("");
  const others = (data?.pipelines ?? []).filter((one) => one.slug !== slug);
  if (others.length === 0) return null;
  const wanted = search.value.trim().toLowerCase();
  const found = others.filter((one) => one.slug.includes(wanted) || one.title?.toLowerCase().includes(wanted));
  return (
    <>
      <button
        type="button"
        class="query-others"
        aria-expanded={open.value}
        title="A query can read tables of other pipelines"
        onClick={() => (open.value = !open.value)}
      >
        {open.value ? <ChevronDown /> : <ChevronRight />}
        Other pipelines
      </button>
      {open.value && others.length > LISTED_MAX && (
        <div class="query-find">
          <TextField
            label="Search other pipelines"
            bare
            type="search"
            placeholder="Search other pipelines"
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value)}
          />
        </div>
      )}
      {open.value && (
        <ul class="query-tables query-others-list">
          {found.slice(0, LISTED_MAX).map((one) => (
            <Pipeline key={one.slug} slug={one.slug} title={one.title} onInsert={onInsert} />
          ))}
          {found.length === 0 && <li class="query-none dim">No matching pipelines.</li>}
          {found.length > LISTED_MAX && (
            <li class="query-none dim">and {counted(found.length - LISTED_MAX, "more pipeline")}; search by name</li>
          )}
        </ul>
      )}
    </>
  );
}

function Pipeline({
  slug,
  title,
  onInsert,
}: {
  slug: string;
  title?: string | null;
  onInsert: (text: string) => void;
}) {
  const open = useSignal(false);
  const { data, error } = useQuery({ ...tablesQuery(slug), enabled: open.value });
  const tables = data?.tables.filter(({ system }) => !system);
  return (
    <li>
      <button
        type="button"
        class="query-others"
        aria-expanded={open.value}
        aria-label={`Tables of ${slug}`}
        onClick={() => (open.value = !open.value)}
      >
        {open.value ? <ChevronDown /> : <ChevronRight />}
        <span class="cut">
          {title || slug}
          {title && <code class="dim"> {slug}</code>}
        </span>
      </button>
      {open.value && (
        <ul class="query-columns">
          {tables?.map(({ name, rows }) => {
            const text = `${identifier(slug)}.${identifier(name)}`;
            return (
              <li key={name}>
                <button type="button" class="query-put" title={`Insert ${text}`} onClick={() => onInsert(text)}>
                  <span class="cut grow">{name}</span>
                  <span class="num dim" title={counted(rows, "row")}>
                    {compact(rows)}
                  </span>
                </button>
              </li>
            );
          })}
          {tables?.length === 0 && <li class="query-none dim">No tables.</li>}
          {!data && <li class="query-none dim">{error ? "Couldn't load the tables." : "Loading…"}</li>}
        </ul>
      )}
    </li>
  );
}
