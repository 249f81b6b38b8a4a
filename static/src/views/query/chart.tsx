import { lazy, Suspense } from "preact/compat";
import { useMemo } from "preact/hooks";
import type { QueryAnswer, Row } from "../../api/types";
import { AddToDashboard } from "../../boards/add-dialog";
import { choiceOfSpec, firstOfResult } from "../../boards/builder/change";
import { profileRows } from "../../boards/builder/profile";
import { guessChart } from "../../components/chart";
import { Skeleton } from "../../components/states";
import { stateOf } from "./state";

const Builder = lazy(() => import("../../boards/builder"));

/** Chart of the result, guessed from its columns and adjustable. */
export function ChartPane({ slug, answer, sql }: { slug: string; answer: QueryAnswer; sql: string }) {
  const { chart } = stateOf(slug);
  const rows = answer.rows as Row[];
  const known = useMemo(
    () => ({ columns: answer.columns, profile: profileRows(rows, answer.columns) }),
    [answer, rows],
  );
  const guessed = useMemo(() => {
    const spec = guessChart(answer.columns, rows);
    return spec ? choiceOfSpec(sql, spec, answer.columns) : firstOfResult(sql, known.profile);
  }, [answer, rows, sql, known]);
  const choice = chart.value ? { ...chart.value, source: { sql } } : guessed;
  return (
    <div class="query-chart">
      <Suspense fallback={<Skeleton lines={8} label="Chart" />}>
        <Builder
          slug={slug}
          choice={choice}
          known={known}
          given={answer}
          onChange={(next) => (chart.value = next)}
          actions={({ sql: made, max, ready }) => (
            <AddToDashboard slug={slug} panel={{ choice, sql: made, max }} suggested={slug} ready={ready} />
          )}
        />
      </Suspense>
    </div>
  );
}
