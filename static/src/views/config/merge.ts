/** Three-way merge of texts: takes one-sided changes and reports conflicts. */
import { diff3Merge, LCS } from "node-diff3";
import { formatted, syntaxProblem } from "../../format/json";
import { mergedValues } from "./merge-values";

export interface Conflict {
  kind: "conflict";
  base: string[];
  mine: string[];
  theirs: string[];
}
type Piece = { kind: "same"; lines: string[] } | Conflict;

interface Merging {
  pieces: Piece[];
  /** Whether the texts were formatted first, because they conflicted by lines. */
  formatted: boolean;
}

/** Resolution of a conflict; a text is edited by the user. */
export type Choice = "mine" | "theirs" | "both" | { text: string };

const linesOf = (text: string): string[] => text.replaceAll("\r\n", "\n").replace(/\n$/, "").split("\n");

/** Common lines, if the base is unknown; every difference is then a conflict. */
function common(mine: string[], theirs: string[]): string[] {
  const lines: string[] = [];
  for (let at = LCS(mine, theirs); at.chain; at = at.chain) lines.unshift(mine[at.buffer1index] ?? "");
  return lines;
}

function merged(base: string | undefined, mine: string, theirs: string): Piece[] {
  const [ours, others] = [linesOf(mine), linesOf(theirs)];
  const before = base === undefined ? common(ours, others) : linesOf(base);
  const pieces = diff3Merge(ours, before, others, { excludeFalseConflicts: true });
  return pieces.map((piece): Piece => {
    if (piece.ok) return { kind: "same", lines: piece.ok };
    const { a = [], o = [], b = [] } = piece.conflict ?? {};
    // Without a base, a line on one side counts as added.
    return { kind: "conflict", mine: a, base: o, theirs: b };
  });
}

export const conflictsOf = (pieces: Piece[]): Conflict[] => pieces.filter((piece) => piece.kind === "conflict");

const shaped = (text: string): string => (syntaxProblem(text) ? text : formatted(text));

/** `base`: the common base, if known. */
export function merge(base: string | undefined, mine: string, theirs: string): Merging {
  const plain = merged(base, mine, theirs);
  if (conflictsOf(plain).length === 0 && !syntaxProblem(chosen(plain, []) ?? ""))
    return { pieces: plain, formatted: false };
  const values = base === undefined ? undefined : mergedValues(base, mine, theirs);
  if (values !== undefined) return { pieces: [{ kind: "same", lines: linesOf(formatted(values)) }], formatted: true };
  if (conflictsOf(plain).length === 0) return { pieces: plain, formatted: false };
  const again = merged(base === undefined ? undefined : shaped(base), shaped(mine), shaped(theirs));
  const better = conflictsOf(again).length < conflictsOf(plain).length;
  return better ? { pieces: again, formatted: true } : { pieces: plain, formatted: false };
}

/** The merged text; undefined while a conflict is unresolved. */
export function chosen(pieces: Piece[], choices: (Choice | undefined)[]): string | undefined {
  const lines: string[] = [];
  let conflict = 0;
  for (const piece of pieces) {
    if (piece.kind === "same") {
      lines.push(...piece.lines);
      continue;
    }
    const choice = choices[conflict];
    conflict += 1;
    if (choice === undefined) return undefined;
    if (typeof choice === "object") lines.push(...(choice.text === "" ? [] : linesOf(choice.text)));
    else if (choice === "both") lines.push(...piece.mine, ...piece.theirs);
    else lines.push(...piece[choice]);
  }
  return `${lines.join("\n")}\n`;
}
