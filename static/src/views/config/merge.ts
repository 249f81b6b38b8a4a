/** Three versions of a text made one: what only one side changed is taken, what both did is for a person. */
import { diff3Merge, LCS } from "node-diff3";
import { formatted, syntaxProblem } from "./format";
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
  /** All three were formatted first, since by their lines they didn't fit. */
  formatted: boolean;
}

/** What a person chose for a conflict; a text is their own. */
export type Choice = "mine" | "theirs" | "both" | { text: string };

const linesOf = (text: string): string[] => text.replaceAll("\r\n", "\n").replace(/\n$/, "").split("\n");

/** What both have, where nobody knows what was before: each difference is a conflict then. */
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
    // Without a base a line that only one has was added by it, for all that is known.
    return { kind: "conflict", mine: a, base: o, theirs: b };
  });
}

export const conflictsOf = (pieces: Piece[]): Conflict[] => pieces.filter((piece) => piece.kind === "conflict");

const shaped = (text: string): string => (syntaxProblem(text) ? text : formatted(text));

/** `base`: what both began with; undefined if that isn't known any more. */
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

/** The text that the choices give; undefined while one is missing. */
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
