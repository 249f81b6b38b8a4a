/** Validates the text: JSON syntax immediately, everything else by the service after a pause in typing. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { checkConfig } from "../../api/config";
import { asFailure, type ApiFailure } from "../../api/failure";
import { session } from "../../api/session";
import type { ConfigProblem, ConfigSaved } from "../../api/types";
import type { Mark } from "../../components/editor";
import { pointerRange } from "../../components/editor/tree";
import { lineAndColumn } from "../../format/text";
import { syntaxProblem } from "../../format/json";

/** In milliseconds. */
const DEBOUNCE_MS = 500;

export interface Checked {
  /** Result for the current text, or for the last valid JSON while validation is in progress. */
  verdict: ConfigSaved | undefined;
  busy: boolean;
  failure: ApiFailure | undefined;
}

export interface Shown extends Mark {
  /** Counted from 1. */
  line: number;
  column: number;
  path: string;
}

export function useChecked(slug: string, text: string): Checked {
  const [found, setFound] = useState<Checked>({ verdict: undefined, busy: true, failure: undefined });
  const isIn = session.state.value === "in";
  useEffect(() => {
    if (!isIn) return undefined;
    if (syntaxProblem(text)) {
      setFound((before) => ({ ...before, busy: false, failure: undefined }));
      return undefined;
    }
    const abort = new AbortController();
    setFound((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => {
      checkConfig(slug, text, abort.signal).then(
        (verdict) => setFound({ verdict, busy: false, failure: undefined }),
        (error: unknown) => {
          if (!abort.signal.aborted) setFound((before) => ({ ...before, busy: false, failure: asFailure(error) }));
        },
      );
    }, DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [slug, text, isIn]);
  return found;
}

function positioned(text: string, severity: "error" | "warning", problem: ConfigProblem): Shown {
  const { from, to } = pointerRange(text, problem.path, "json");
  return { from, to, severity, message: problem.message, path: problem.path, ...lineAndColumn(text, from) };
}

/** Errors, then warnings, by position; only the syntax error if the text isn't JSON. */
export function shownProblems(text: string, problems: ConfigProblem[], warnings: ConfigProblem[]): Shown[] {
  const syntax = syntaxProblem(text);
  if (!syntax) {
    const of = (severity: "error" | "warning", found: ConfigProblem[]) =>
      found.map((one) => positioned(text, severity, one)).sort((a, b) => a.from - b.from);
    return [...of("error", problems), ...of("warning", warnings)];
  }
  const { offset, message } = syntax;
  const to = Math.min(text.length, offset + 1);
  return [
    {
      from: offset,
      to,
      severity: "error",
      message: `Invalid JSON: ${message}`,
      path: "",
      ...lineAndColumn(text, offset),
    },
  ];
}

export function useShownProblems(text: string, checked: Checked): Shown[] {
  const { problems, warnings } = checked.verdict ?? {};
  return useMemo(() => shownProblems(text, problems ?? [], warnings ?? []), [text, problems, warnings]);
}
