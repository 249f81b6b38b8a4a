/** Locates SQL errors in the editor's text. */
import type { ApiFailure } from "../../api/failure";
import type { Mark } from "../../components/editor";

interface Position {
  line: number;
  column: number;
}

/** Position reported by the service within the statement; both from 1. */
export function positionOf(failure: ApiFailure): Position | undefined {
  const { line, column } = failure.problems[0] ?? {};
  return typeof line === "number" && typeof column === "number" && line > 0 && column > 0
    ? { line, column }
    : undefined;
}

/** Token of an error: a name, a quoted string, a number, or a symbol. */
const WORD = /^(?:"(?:[^"]|"")*"|'[^']*'?|[\p{L}\p{N}_$]+|\S)/u;

/** Mark of an error at `position` of `sql`, which starts at `from` in the editor's text. */
export function markAt(sql: string, from: number, position: Position, message: string): Mark {
  const lines = sql.split("\n");
  const start = lines.slice(0, position.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const line = lines[position.line - 1] ?? "";
  const column = nearest(line, Math.min(position.column - 1, line.length), message);
  const length = WORD.exec(line.slice(column))?.[0].length ?? 0;
  const at = Math.min(start + column, sql.length);
  return { from: from + at, to: from + at + length, severity: "error", message };
}

/** The service counts wide characters twice; the name in the message corrects the column. */
function nearest(line: string, column: number, message: string): number {
  const name = /["`]([^"`]+)["`]/.exec(message)?.[1];
  if (!name || line.startsWith(name, column) || line.startsWith(`"${name}"`, column)) return column;
  const found: number[] = [];
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1)) found.push(at);
  found.sort((a, b) => Math.abs(a - column) - Math.abs(b - column));
  const wide = [...line].filter((char) => char > "\u{10ff}").length;
  const [best] = found;
  return best !== undefined && Math.abs(best - column) <= wide ? best : column;
}
