import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "preact/hooks";
import { shownTheme } from "../../browser/theme";
import { darkness, shadowOf } from "./code";
import type { DiffProps } from "./index";
import { reading } from "./setup";
import { duckDb } from "./sql";

/** Minimum width for a side-by-side diff. */
const WIDE_PX = 900;
const COLLAPSE = { margin: 3, minSize: 6 };
/** Limits of the diff for large texts. */
const DIFF = { scanLimit: 5_000, timeout: 500 };

function shared(language: DiffProps["language"], label: string): Extension {
  const found = language === "json" ? json() : language === "yaml" ? yaml() : duckDb(() => ({}));
  return [
    reading,
    darkness(),
    found,
    EditorState.readOnly.of(true),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
  ];
}

function mountDiff(
  host: HTMLElement,
  { label, language, before, after, beforeName, afterName }: DiffProps,
  wide: boolean,
) {
  const root = shadowOf(host);
  const [left, right] = [`${label}: ${beforeName ?? "before"}`, `${label}: ${afterName ?? "after"}`];
  if (wide) {
    return new MergeView({
      a: { doc: before, extensions: shared(language, left) },
      b: { doc: after, extensions: shared(language, right) },
      parent: root,
      root,
      collapseUnchanged: COLLAPSE,
      diffConfig: DIFF,
      gutter: true,
    });
  }
  return new EditorView({
    doc: after,
    extensions: [
      shared(language, right),
      unifiedMergeView({
        original: before,
        mergeControls: false,
        collapseUnchanged: COLLAPSE,
        diffConfig: DIFF,
        syntaxHighlightDeletions: true,
      }),
    ],
    parent: root,
    root,
  });
}

export default function Comparison(props: DiffProps) {
  const host = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(() => window.innerWidth >= WIDE_PX);
  const { label, language, before, after, beforeName, afterName } = props;
  const dark = shownTheme.value;

  useEffect(() => {
    const watched = window.matchMedia(`(min-width: ${String(WIDE_PX)}px)`);
    const changed = () => setWide(watched.matches);
    watched.addEventListener("change", changed);
    return () => watched.removeEventListener("change", changed);
  }, []);
  useEffect(() => {
    if (!host.current) return undefined;
    const view = mountDiff(host.current, { label, language, before, after, beforeName, afterName }, wide);
    return () => view.destroy();
  }, [label, language, before, after, beforeName, afterName, wide, dark]);

  return (
    <div class="diff">
      {wide && (beforeName ?? afterName) && (
        <div class="diff-names" aria-hidden="true">
          <span>{beforeName}</span>
          <span>{afterName}</span>
        </div>
      )}
      <div ref={host} class="diff-host" />
    </div>
  );
}
