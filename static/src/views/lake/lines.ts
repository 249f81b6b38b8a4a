/** Loads lines of a file in pieces. */
import { useCallback, useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api, ask } from "../../api/client";
import { asFailure, type ApiFailure } from "../../api/failure";
import { useRecovered } from "../../api/recovered";

export const PIECE = 200;
/** Maximum number of cached pieces; least recently used ones are dropped. */
const PIECES_MAX = 50;

export interface Lines {
  /** Known lines, plus room for possible further ones. */
  total: number;
  /** Whether all lines are counted. */
  whole: boolean;
  encoding: string | undefined;
  error: ApiFailure | undefined;
  /** Lines beyond can't be shown: too much would have to be read. */
  beyond: boolean;
  get: (line: number) => string | undefined;
  isCut: (line: number) => boolean;
}

interface Piece {
  lines: string[];
  cut: Set<number>;
}

/** Extent of a file after a piece has come, in whatever order pieces come. */
export function extended(
  { total, whole, beyond }: Pick<Lines, "total" | "whole" | "beyond">,
  at: number,
  got: { lines: string[]; more: boolean },
): Pick<Lines, "total" | "whole" | "beyond"> {
  const last = at * PIECE + got.lines.length;
  const isStopped = got.lines.length === 0 && got.more;
  // A counted total stays; a piece past the end of the file has no lines and counts none.
  if (whole) return { total, whole, beyond: beyond || isStopped };
  const isCounted = !got.more && (got.lines.length > 0 || at === 0);
  return {
    total: isStopped || isCounted ? last : got.more ? Math.max(total, last + PIECE) : Math.min(total, last),
    whole: isCounted,
    beyond: beyond || isStopped,
  };
}

/** @param start line to show first, counted from 1 */
export function useLines(key: string, start: number): [Lines, (first: number, end: number) => void, () => void] {
  const pieces = useRef(new Map<number, Piece>());
  const asked = useRef(new Set<number>());
  const state = useSignal<Omit<Lines, "get" | "isCut">>({
    total: start + PIECE,
    whole: false,
    encoding: undefined,
    error: undefined,
    beyond: false,
  });
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);

  const load = useCallback(
    async (at: number) => {
      if (asked.current.has(at) || pieces.current.has(at)) return;
      asked.current.add(at);
      try {
        const query = { key, line: at * PIECE + 1, count: PIECE };
        const got = await ask(api.GET("/api/lake/lines", { params: { query } }));
        if (!alive.current) return;
        pieces.current.set(at, { lines: got.lines, cut: new Set(got.lines_cut) });
        const [oldest] = pieces.current.keys();
        if (pieces.current.size > PIECES_MAX && oldest !== undefined) pieces.current.delete(oldest);
        state.value = { ...state.value, ...extended(state.value, at, got), encoding: got.encoding, error: undefined };
      } catch (error) {
        if (alive.current) state.value = { ...state.value, error: asFailure(error) };
      } finally {
        asked.current.delete(at);
      }
    },
    [key, state],
  );
  const failed = state.value.error !== undefined;
  const need = useCallback(
    (first: number, end: number) => {
      if (failed) return;
      for (let at = Math.floor(first / PIECE); at * PIECE < end; at += 1) void load(at);
    },
    [failed, load],
  );
  const retry = () => {
    state.value = { ...state.value, error: undefined };
  };
  useRecovered(() => {
    if (state.peek().error) retry();
  });
  const pieceOf = (line: number) => pieces.current.get(Math.floor(line / PIECE));
  const lines: Lines = {
    ...state.value,
    get: (line) => pieceOf(line)?.lines[line % PIECE],
    isCut: (line) => pieceOf(line)?.cut.has(line % PIECE) ?? false,
  };
  return [lines, need, retry];
}
