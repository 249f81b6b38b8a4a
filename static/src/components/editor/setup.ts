/** Extensions of all editors, and those of each language. */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { jsonLanguage } from "@codemirror/lang-json";
import { yamlLanguage } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, Prec, type Extension } from "@codemirror/state";
import {
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
import type { EditorProps } from "./index";
import { schemaCompletion, schemaHover, type SchemaSource } from "./complete";
import { overwrite } from "./overwrite";
import { duckDb } from "./sql";
import { highlighting, looks } from "./theme";

/** Current props: extensions outlive a render. */
type Now = () => EditorProps;

export function languageOf(language: EditorProps["language"], now: Now): Extension {
  if (language === "sql") return [duckDb(() => now().tables ?? {}), EditorView.lineWrapping];
  const source: SchemaSource = { language, schema: () => now().schema, offers: () => now().offers };
  const found = language === "json" ? jsonLanguage : yamlLanguage;
  return [found, found.data.of({ autocomplete: schemaCompletion(source) }), schemaHover(source)];
}

/** Style and read-only features, shared by editor and diff. */
export const reading: Extension = [
  lineNumbers(),
  highlightSpecialChars(),
  drawSelection(),
  syntaxHighlighting(highlighting),
  looks,
  EditorState.tabSize.of(2),
  indentUnit.of("  "),
];

function keys(now: Now): Extension {
  const does = (what: "onSubmit" | "onSave") => (view: EditorView) => {
    closeCompletion(view);
    now()[what]?.();
    return Boolean(now()[what]);
  };
  return Prec.highest(
    keymap.of([
      { key: "Mod-Enter", run: does("onSubmit"), preventDefault: true },
      { key: "Mod-s", run: does("onSave"), preventDefault: true },
    ]),
  );
}

export function writing(now: Now): Extension {
  return [
    keys(now),
    overwrite,
    highlightActiveLineGutter(),
    history(),
    foldGutter({ openText: "▾", closedText: "▸" }),
    lintGutter(),
    dropCursor(),
    rectangularSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ icons: false, maxRenderedOptions: 60, defaultKeymap: true }),
    highlightSelectionMatches({ minSelectionLength: 3 }),
    search({ top: false }),
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
  ];
}

/** Accessible name, with a hint for leaving the editor by keyboard. */
export const named = (label: string): Extension =>
  EditorView.contentAttributes.of({
    "aria-label": label,
    tabindex: "0",
    "aria-description": "Tab indents. To leave the editor, press Escape, then Tab.",
    spellcheck: "false",
    autocapitalize: "off",
  });
