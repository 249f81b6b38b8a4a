import { CircleCheck, CircleX, TriangleAlert } from "lucide-preact";
import type { ApiFailure } from "../../api/failure";
import type { DashboardProblem, DashboardVerdict } from "../../api/types";
import { counted } from "../../format/number";
import { plainProblem } from "../../boards/repair";
import { MessageText } from "../../components/message-text";

interface Props {
  verdict: DashboardVerdict | undefined;
  busy: boolean;
  /** Why validation failed to run; the verdict belongs to an older text. */
  failure?: ApiFailure | undefined;
  /** Whether there is something to publish. */
  isChanged: boolean;
  onGo: (problem: DashboardProblem) => void;
}

export const noProblems = (isChanged: boolean): string => `No problems.${isChanged ? " Ready to publish." : ""}`;

function verdictSummary(verdict: DashboardVerdict | undefined, isChanged: boolean): string {
  if (!verdict) return "Not validated yet";
  if (verdict.errors.length > 0) return counted(verdict.errors.length, "problem");
  return verdict.warnings.length > 0 ? counted(verdict.warnings.length, "warning") : noProblems(isChanged);
}

/** Validation results by line; a click selects the line. */
export function Problems({ verdict: judged, busy, failure, isChanged, onGo }: Props) {
  const verdict = failure ? undefined : judged;
  const found = [
    ...(verdict?.errors.map((problem) => ({ problem, isError: true })) ?? []),
    ...(verdict?.warnings.map((problem) => ({ problem, isError: false })) ?? []),
  ];
  const Icon = !verdict
    ? TriangleAlert
    : verdict.errors.length > 0
      ? CircleX
      : found.length > 0
        ? TriangleAlert
        : CircleCheck;
  const tone = !verdict ? "" : verdict.errors.length > 0 ? "bad" : found.length > 0 ? "warn" : "ok";
  return (
    <section class="dash-problems" aria-label="Problems">
      <p class={`dash-problems-head ${tone}`} role="status">
        <Icon aria-hidden="true" />
        {failure ? `Not validated: ${failure.message}` : verdictSummary(verdict, isChanged)}
        {busy && <span class="dim">· validating</span>}
      </p>
      {found.length > 0 && (
        <ol>
          {found.map(({ problem, isError }, at) => (
            <li key={at}>
              <button type="button" onClick={() => onGo(problem)}>
                <span class="num">
                  {problem.line}:{problem.column}
                </span>
                <span class={isError ? "dash-problem-bad" : "dash-problem-warn"}>{isError ? "error" : "warning"}</span>
                <span title={problem.message}>
                  <MessageText text={plainProblem(problem.message)} />
                </span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
