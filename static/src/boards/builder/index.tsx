import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import type { ComponentChildren } from "preact";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import type { QueryAnswer, Row } from "../../api/types";
import { routes, RUN_IMMEDIATELY } from "../../browser/routes";
import { Button } from "../../components/button";
import { Chart } from "../../components/chart";
import { fieldGrid, Grid, rowsInMemory } from "../../components/grid";
import { Pivot } from "../../components/pivot";
import { Skeleton } from "../../components/states";
import { count } from "../../format/number";
import { numeric, written } from "../../format/values";
import {
  type ChartChoice,
  columnsOf,
  formatOf,
  measureTitle,
  namesOf,
  OTHER,
  pivotOf,
  SAMPLE_ROWS,
  specOf,
  titleOf,
} from "./choice";
import type { Known } from "./change";
import { Fields } from "./fields";
import { Filters } from "./filters";
import { ran } from "../../api/sql";
import { statementOf } from "./statement";
import "./builder.css";

const ROWS_MAX = 10_000;

export interface BuilderProps {
  slug: string;
  choice: ChartChoice;
  known: Known;
  onChange: (choice: ChartChoice) => void;
  /** The result of the source, if it is a query that has run. */
  given?: QueryAnswer | undefined;
  /** Puts values in place of parameters, to run the statement. */
  filled?: ((sql: string) => string) | undefined;
  /** Told the SQL that has run, and the largest value of the measure; undefined while it runs or if it fails. */
  onMade?: (sql: string | undefined, max: number | undefined) => void;
  /** Told whether a filter is entered that isn't applied. */
  onPending?: (pending: boolean) => void;
  /** Buttons beside “SQL”. `max`: the largest value of the measure. */
  actions?: (made: { sql: string; max: number | undefined; ready: boolean }) => ComponentChildren;
}

/** Largest value of the measure. */
function largest(choice: ChartChoice, answer: QueryAnswer | undefined): number | undefined {
  const at = answer?.columns.findIndex(({ name }) => name === namesOf(choice).measure) ?? -1;
  if (!answer || at < 0) return undefined;
  const found = (answer.rows as Row[]).map((row) => numeric(row[at])).filter((one) => one !== null);
  return found.length > 0 ? found.reduce((most, one) => Math.max(most, one)) : undefined;
}

/** Builds a chart from fields, runs its SQL and shows both. */
export default function Builder({
  slug,
  choice,
  known,
  onChange,
  given,
  filled,
  onMade,
  onPending,
  actions,
}: BuilderProps) {
  const [shown, setShown] = useState(false);
  const sql = useMemo(() => statementOf(choice), [choice]);
  const runs = filled ? filled(sql) : sql;
  const isGiven =
    given !== undefined &&
    "sql" in choice.source &&
    sql === statementOf({ source: choice.source, kind: "line", aggregate: "none" });
  const asked = useQuery({
    queryKey: [...keys.tables(slug), "chart", runs],
    queryFn: ({ signal }) => ran(slug, runs, signal, ROWS_MAX),
    enabled: !isGiven,
    staleTime: 30_000,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const answer = isGiven ? given : asked.error ? undefined : asked.data;
  const max = useMemo(() => largest(choice, answer), [choice, answer]);
  // Earlier data doesn't fit the columns of another choice.
  const fits = isGiven || !asked.isPlaceholderData;
  const [pending, setPending] = useState(false);
  const report = useCallback(
    (now: boolean) => {
      setPending(now);
      onPending?.(now);
    },
    [onPending],
  );
  const ready = answer !== undefined && fits && !pending;
  const callback = useRef(onMade);
  callback.current = onMade;
  useEffect(() => callback.current?.(ready ? sql : undefined, max), [ready, sql, max]);
  return (
    <div class="build">
      <Fields choice={choice} known={known} onChange={onChange} />
      <div class="build-bar">
        <Filters slug={slug} choice={choice} known={known} filled={filled} onChange={onChange} onPending={report} />
        <span class="grow" />
        <Button variant="quiet" aria-expanded={shown} onClick={() => setShown(!shown)}>
          SQL
        </Button>
        <Link class="button quiet" href={`~${routes.query(slug, { sql: runs })}`} state={RUN_IMMEDIATELY}>
          Open in Query
        </Link>
        {actions?.({ sql, max, ready })}
      </div>
      {shown && (
        <pre class="build-sql" tabIndex={0} aria-label="SQL of the chart">
          {sql}
        </pre>
      )}
      <div class="build-shown" aria-busy={!fits || (!answer && !asked.error)}>
        {asked.error && !isGiven ? (
          <p class="secondary" role="alert">
            Couldn't load the chart: {asFailure(asked.error).message}
          </p>
        ) : !answer || !fits ? (
          <Skeleton lines={7} label="Chart" />
        ) : answer.rows.length === 0 && choice.filters ? (
          <p class="chart-empty">No rows match the filters.</p>
        ) : (
          <Shown {...{ choice, known, answer, max }} />
        )}
      </div>
      <Notes choice={choice} answer={fits ? answer : undefined} />
    </div>
  );
}

interface ShownProps {
  choice: ChartChoice;
  known: Known;
  answer: QueryAnswer;
  max: number | undefined;
}

function Shown({ choice, known, answer, max }: ShownProps) {
  const rows = answer.rows as Row[];
  const plain = choice.aggregate === "none";
  const format = plain ? choice.format : formatOf(choice, max);
  const isPercent = known.profile.columns.some(({ name, unit }) => name === choice.by?.column && unit === "percent");
  const spec = useMemo(() => {
    const made = specOf(choice, format);
    return made && isPercent ? { ...made, x: { ...made.x, format: "percentage" } } : made;
  }, [choice, format, isPercent]);
  const label = titleOf(choice);
  if (choice.kind === "number") {
    const at = answer.columns.findIndex(({ name }) => name === namesOf(choice).measure);
    const value = rows[0]?.[at];
    return (
      <div class="build-number">
        <p>{written(value, format, answer.columns[at]?.type) || "–"}</p>
        <p class="secondary">{measureTitle(choice)}</p>
      </div>
    );
  }
  const pivot = pivotOf(choice, format);
  if (pivot) return <Pivot label={label} spec={pivot} columns={answer.columns} rows={rows} />;
  if (!spec) {
    const grid = fieldGrid(columnsOf(choice, format) ?? [], answer.columns, rows);
    return <Grid label={label} columns={grid.columns} rows={rowsInMemory(grid.rows)} />;
  }
  return <Chart label={label} spec={spec} columns={answer.columns} rows={rows} fill />;
}

function Notes({ choice, answer }: { choice: ChartChoice; answer: QueryAnswer | undefined }) {
  const notes: string[] = [];
  for (const one of [choice.by, choice.split]) {
    if (one?.top === undefined || choice.aggregate === "none" || choice.kind === "number") continue;
    const rest =
      choice.others === false ? "the other values are left out" : `the other values are grouped as “${OTHER}”`;
    notes.push(`Top ${one.top} values of ${one.column}; ${rest}.`);
  }
  if (choice.kind === "scatter" && answer && answer.row_count >= SAMPLE_ROWS)
    notes.push(`A random sample of ${count(SAMPLE_ROWS)} rows.`);
  if (answer?.truncated) notes.push(`Drawn from the first ${count(answer.row_count)} rows of the result.`);
  return notes.length > 0 ? <p class="build-notes">{notes.join(" ")}</p> : null;
}
