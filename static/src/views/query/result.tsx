import { Download as DownloadIcon, X } from "lucide-preact";
import type { QueryAnswer } from "../../api/types";
import { Button, IconButton } from "../../components/button";
import { download, downloads, FORMATS, type Format } from "../../components/download";
import { Grid, rowsInMemory } from "../../components/grid";
import { Menu } from "../../components/menu";
import { Empty } from "../../components/states";
import { bytes, count, counted } from "../../format/number";
import { duration } from "../../format/time";
import { printed } from "../../browser/shortcuts";
import { ChartPane } from "./chart";
import { ResultColumns } from "./columns";
import { Problem } from "./problem";
import { ElapsedQueryTime } from "./run";
import { ROWS_MAX, stateOf, type QueryState } from "./state";

const fileOf = (slug: string): string => `${slug}-query`;
/** One download at a time per pipeline. */
const current = (slug: string) => downloads.value.find((one) => one.slug === slug && one.name.startsWith(fileOf(slug)));
function start(slug: string, sql: string, format: Format): void {
  if (!current(slug)) void download({ slug, name: fileOf(slug), format, sql });
}

function Downloads({ slug, sql }: { slug: string; sql: string }) {
  const one = current(slug);
  if (one) {
    return (
      <span class="row query-download" role="status">
        <span class="num">{`${one.format.toUpperCase()} ${bytes(one.bytes)}`}</span>
        <IconButton label="Cancel download" icon={<X />} onClick={one.cancel} />
      </span>
    );
  }
  return (
    <Menu
      label="Download all rows"
      button={
        <>
          <DownloadIcon />
          <span class="query-wide">Download</span>
        </>
      }
      items={FORMATS.map(({ format, label, hint }) => ({
        label,
        hint,
        onSelect: () => start(slug, sql, format),
      }))}
    />
  );
}

function resultSummary(answer: QueryAnswer): string {
  if (!answer.truncated) return counted(answer.row_count, "row");
  if (answer.limit_reason === "bytes") return `Showing the first ${counted(answer.row_count, "row")} (16 MiB)`;
  return `Showing the first ${count(answer.row_count || ROWS_MAX)} rows`;
}

function Switch({ state, chartable }: { state: QueryState; chartable: boolean }) {
  return (
    <span class="query-switch" role="group" aria-label="Display as">
      {(["grid", "chart", "columns"] as const).map((shown) => (
        <button
          key={shown}
          type="button"
          aria-pressed={state.shown.value === shown}
          disabled={shown === "chart" && !chartable}
          title={shown === "chart" && !chartable ? "A chart needs at least one row" : undefined}
          onClick={() => (state.shown.value = shown)}
        >
          {NAMES[shown]}
        </button>
      ))}
    </span>
  );
}

const NAMES = { grid: "Grid", chart: "Chart", columns: "Columns" } as const;

function Shown({ slug, answer, sql, ms }: { slug: string; answer: QueryAnswer; sql: string; ms: number }) {
  const state = stateOf(slug);
  const chartable = answer.rows.length > 0;
  const chart = state.shown.value === "chart" && chartable;
  const columns = state.shown.value === "columns";
  const running = state.running.value;
  return (
    <>
      <div class="query-bar">
        <span role="status" class="query-summary">
          {running ? (
            <>
              Running <ElapsedQueryTime since={running.since} />
            </>
          ) : (
            <>
              {resultSummary(answer)} <span class="dim">· {duration(ms)}</span>
            </>
          )}
        </span>
        {answer.truncated && !running && (
          <Button variant="quiet" onClick={() => start(slug, sql, "csv")}>
            Download all
          </Button>
        )}
        <span class="grow" />
        <Switch state={state} chartable={chartable} />
        <Downloads slug={slug} sql={sql} />
      </div>
      <div class={running ? "query-shown old" : "query-shown"}>
        {chart ? (
          <ChartPane slug={slug} answer={answer} sql={sql} />
        ) : columns ? (
          <ResultColumns answer={answer} />
        ) : (
          <Grid label="Result" columns={answer.columns} rows={rowsInMemory(answer.rows as never)} />
        )}
      </div>
    </>
  );
}

export function ResultPane({
  slug,
  onRun,
  onReveal,
}: {
  slug: string;
  onRun: () => void;
  onReveal: (line: number, column: number) => void;
}) {
  const state = stateOf(slug);
  const [outcome, running] = [state.outcome.value, state.running.value];
  return (
    <section class="query-result" aria-label="Result">
      {outcome?.answer ? (
        <Shown slug={slug} answer={outcome.answer} sql={outcome.sql} ms={outcome.ms} />
      ) : running ? (
        <div class="query-bar">
          <span role="status" class="query-summary">
            Running <ElapsedQueryTime since={running.since} />
          </span>
        </div>
      ) : outcome?.failure ? (
        <Problem
          slug={slug}
          outcome={outcome}
          failure={outcome.failure}
          onRun={onRun}
          onReveal={onReveal}
          onReplace={(text) => (state.text.value = text)}
        />
      ) : (
        <Empty title="No result yet">
          Write a query above and select Run query
          <span class="query-wide">
            , or press{" "}
            {printed("mod+Enter").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </span>
          . To insert a name, click it in the list of tables.
        </Empty>
      )}
    </section>
  );
}
