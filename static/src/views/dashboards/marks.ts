import type { DashboardProblem, DashboardVerdict } from "../../api/types";
import type { Mark } from "../../components/editor";

/** Offset of a line and a column, both in characters from 1. */
function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let at = 1; at < line; at += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  const end = text.indexOf("\n", start);
  const whole = text.slice(start, end < 0 ? text.length : end);
  // The service counts characters, the editor UTF-16 code units.
  return start + [...whole].slice(0, column - 1).join("").length;
}

function markOf(text: string, { line, column, message }: DashboardProblem, severity: Mark["severity"]): Mark {
  const from = offsetOf(text, line, column);
  const rest = /^(?:[\w$-]+|[^\n]?)/.exec(text.slice(from, from + 200))?.[0].length ?? 0;
  return { from, to: Math.min(text.length, from + Math.max(1, rest)), severity, message };
}

export const marksOf = (text: string, verdict: DashboardVerdict | undefined): Mark[] =>
  verdict
    ? [
        ...verdict.errors.map((one) => markOf(text, one, "error")),
        ...verdict.warnings.map((one) => markOf(text, one, "warning")),
      ]
    : [];
