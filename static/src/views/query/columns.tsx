import { useMemo } from "preact/hooks";
import type { QueryAnswer, Row } from "../../api/types";
import { boundText, Distribution } from "../../boards/distribution";
import { summarize } from "../../boards/summary";
import { count, counted, share } from "../../format/number";
import { typeWords } from "../../format/types";

/** Summaries of the result's columns, from the rows that are shown. */
export function ResultColumns({ answer }: { answer: QueryAnswer }) {
  const summaries = useMemo(() => summarize(answer.columns, answer.rows as Row[]), [answer]);
  return (
    <div class="query-columns-summary" tabIndex={0} role="region" aria-label="Columns of the result">
      {answer.truncated && <p class="secondary">Of the first {counted(answer.row_count, "row")}.</p>}
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Type</th>
            <th scope="col" class="num">
              Nulls
            </th>
            <th scope="col" class="num">
              Distinct
            </th>
            <th scope="col" class="num">
              Min
            </th>
            <th scope="col" class="num">
              Max
            </th>
            <th scope="col">Values</th>
          </tr>
        </thead>
        <tbody>
          {summaries.map((summary, at) => (
            <tr key={at}>
              <td>
                <strong>{summary.name}</strong>
              </td>
              <td title={summary.type}>{typeWords(summary.type)}</td>
              <td class="num" title={counted(summary.nulls, "null")}>
                {summary.rows === 0 ? "–" : share(summary.nulls / summary.rows)}
              </td>
              <td class="num">{count(summary.distinct)}</td>
              <td class="num">{boundText(summary.min, summary.type)}</td>
              <td class="num">{boundText(summary.max, summary.type)}</td>
              <td>
                <Distribution summary={summary} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
