import { useQuery } from "@tanstack/preact-query";
import type { ApiFailure } from "../../api/failure";
import { renamesQuery } from "../../api/queries";
import { repaired, replacementOf, wasRenamed } from "../../boards/repair";
import { Button } from "../../components/button";
import { Empty } from "../../components/states";
import { remedyOf } from "../../format/remedies";
import { duration } from "../../format/time";
import { lineAndColumn } from "../../format/text";
import { markAt, positionOf } from "./position";
import type { Outcome } from "./state";

const TITLES: Record<string, string> = {
  invalid_sql: "Query error",
  query_timeout: "The query took too long",
  query_out_of_memory: "The query needs too much memory",
  query_too_large: "The query reads too much data",
};

/** Hint for errors in the statement. */
function hint(failure: ApiFailure): string | undefined {
  if (failure.code !== "invalid_sql") return remedyOf(failure);
  if (failure.message.startsWith("several statements")) return "Select a single statement to run.";
  if (failure.message.includes("has no value"))
    return "Parameters only work in dashboards. Replace the parameter with a value.";
  return undefined;
}

interface Props {
  slug: string;
  outcome: Outcome;
  failure: ApiFailure;
  onRun: () => void;
  onReveal: (line: number, column: number) => void;
  /** Replaces the editor's text. */
  onReplace: (text: string) => void;
}

/** Error of a query: cause, position, remedy. */
export function Problem({ slug, outcome, failure, onRun, onReveal, onReplace }: Props) {
  const { data: renames = [] } = useQuery({ ...renamesQuery(slug), enabled: failure.code === "invalid_sql" });
  if (failure.code === "query_cancelled") {
    return (
      <Empty title={`Cancelled after ${duration(outcome.ms)}`} actions={<Button onClick={onRun}>Run query</Button>}>
        The query was cancelled before it returned a result.
      </Empty>
    );
  }
  const position = positionOf(failure);
  const at =
    position && outcome.from !== undefined
      ? lineAndColumn(outcome.text, markAt(outcome.sql, outcome.from, position, failure.message).from)
      : undefined;
  const { message } = failure;
  const renamed = replacementOf(message, renames);
  const mended = at && wasRenamed(message, renames) ? repaired(outcome.text, { message, ...at }, renames) : undefined;
  const remedy = hint(failure);
  return (
    <div class="state failed" role="alert">
      <h2>{TITLES[failure.code] ?? "Couldn't run the query"}</h2>
      <p class="query-message">{message}</p>
      {remedy && <p class="secondary">{remedy}</p>}
      <div class="row wrap">
        {at && (
          <Button onClick={() => onReveal(at.line, at.column)}>
            Go to line {at.line}, column {at.column}
          </Button>
        )}
        {mended !== undefined && (
          <Button variant="primary" onClick={() => onReplace(mended)}>
            Replace {renamed?.missing} by {renamed?.by}
          </Button>
        )}
        {failure.passing && <Button onClick={onRun}>Try again</Button>}
      </div>
      <p class="dim">
        <code>{failure.code}</code>
        {failure.requestId && (
          <>
            {" "}
            · request <code>{failure.requestId}</code>
          </>
        )}
      </p>
    </div>
  );
}
