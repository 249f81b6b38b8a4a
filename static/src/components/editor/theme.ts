/** Editor theme by tokens; custom properties reach into the shadow root. */
import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const popup = {
  border: "1px solid var(--border)",
  borderRadius: "var(--radius)",
  background: "var(--surface)",
  color: "var(--text)",
  boxShadow: "var(--shadow-over)",
};

const wavyUnderline = (tone: string) => ({
  backgroundImage: "none",
  textDecoration: `underline wavy var(--${tone})`,
  textDecorationSkipInk: "none",
  textUnderlineOffset: "3px",
  paddingBottom: "0",
});

const diagnostic = (tone: string) => ({ borderLeft: `3px solid var(--${tone})` });

export const looks = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", background: "var(--surface)", fontSize: "var(--size-2)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "var(--line)", overflow: "auto" },
  ".cm-content": { padding: "var(--s2) 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 var(--s3) 0 var(--s1)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
  ".cm-content ::selection, .cm-content::selection": { background: "var(--accent-soft)" },
  ".cm-activeLine": { background: "transparent" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--text)", background: "transparent" },
  ".cm-activeLineGutter": { background: "transparent" },
  ".cm-gutters": { background: "var(--surface)", color: "var(--text-3)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "32px", padding: "0 var(--s1) 0 var(--s2)" },
  ".cm-foldGutter .cm-gutterElement": { width: "16px", textAlign: "center", cursor: "pointer" },
  ".cm-foldPlaceholder": {
    border: "1px solid var(--border)",
    background: "var(--surface-2)",
    color: "var(--text-2)",
    padding: "0 var(--s1)",
  },
  "&.cm-focused .cm-matchingBracket, .cm-matchingBracket": { background: "var(--surface-3)", color: "inherit" },
  "&.cm-focused .cm-nonmatchingBracket": { background: "var(--bad-soft)", color: "inherit" },
  ".cm-searchMatch": { background: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { background: "var(--accent-soft)" },
  ".cm-selectionMatch": { background: "var(--surface-3)" },
  ".cm-placeholder": { color: "var(--text-3)" },
  ".cm-snippetField": { background: "var(--surface-2)" },

  ".cm-tooltip": { ...popup, zIndex: "30" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--mono)",
    fontSize: "var(--size-1)",
    maxHeight: "240px",
    maxWidth: "min(480px, 90vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "var(--s1) var(--s2)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent-soft)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--text-2)", fontStyle: "normal", marginLeft: "var(--s2)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600", color: "var(--accent)" },
  ".cm-completionIcon": { color: "var(--text-3)", opacity: "1" },
  ".cm-tooltip.cm-completionInfo": { padding: "var(--s2) var(--s3)", maxWidth: "360px" },
  ".cm-completionInfo, .cm-tooltip-hover": { fontFamily: "var(--font)", fontSize: "var(--size-1)" },
  ".completion-info p": { margin: "0 0 var(--s1)", whiteSpace: "pre-line" },
  ".cm-tooltip-hover .completion-info": { maxWidth: "440px", padding: "var(--s2) var(--s3)" },
  ".cm-tooltip-section:not(:first-child)": { borderTop: "1px solid var(--border)" },

  ".cm-lintRange-error": wavyUnderline("bad"),
  ".cm-lintRange-warning": wavyUnderline("warn"),
  ".cm-lintRange-info": wavyUnderline("run"),
  ".cm-lintRange-active": { background: "var(--surface-3)" },
  ".cm-diagnostic": { padding: "var(--s1) var(--s2)", whiteSpace: "pre-wrap", maxWidth: "480px" },
  ".cm-diagnostic-error": diagnostic("bad"),
  ".cm-diagnostic-warning": diagnostic("warn"),
  ".cm-diagnostic-info": diagnostic("run"),
  ".cm-gutter-lint": { width: "16px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 var(--s1)" },
  ".cm-lint-marker": { width: "8px", height: "8px", margin: "6px 0 0", content: '""', borderRadius: "50%" },
  ".cm-lint-marker-error": { content: '""', background: "var(--bad)", borderRadius: "2px" },
  ".cm-lint-marker-warning": { content: '""', background: "var(--warn)" },
  ".cm-lint-marker-info": { content: '""', background: "var(--run)" },

  ".cm-panels": { background: "var(--surface-2)", color: "var(--text)", borderColor: "var(--border)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--border)" },
  ".cm-panel.cm-search": { padding: "var(--s2) var(--s6) var(--s2) var(--s2)", fontFamily: "var(--font)" },
  ".cm-panel.cm-search label": { fontSize: "var(--size-1)", color: "var(--text-2)" },
  ".cm-textfield": {
    height: "24px",
    border: "1px solid var(--border-strong)",
    borderRadius: "4px",
    background: "var(--surface)",
    color: "var(--text)",
    fontSize: "var(--size-1)",
  },
  ".cm-button": {
    height: "24px",
    border: "1px solid var(--border-strong)",
    borderRadius: "4px",
    backgroundImage: "none",
    background: "var(--surface)",
    color: "var(--text)",
    fontSize: "var(--size-1)",
  },
  ".cm-panel.cm-search [name=close], .cm-panel.cm-panel-lint [name=close]": {
    color: "var(--text)",
    fontSize: "var(--size-3)",
  },

  ".cm-collapsedLines": {
    background: "var(--surface-2)",
    backgroundImage: "none",
    color: "var(--text-2)",
    fontFamily: "var(--font)",
    fontSize: "var(--size-1)",
    padding: "var(--s1) var(--s3)",
    // The library's own sign is missing in many fonts.
    "&:before, &:after": { content: '"…"' },
  },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { background: "var(--bad-soft)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { background: "var(--ok-soft)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "none",
    backgroundColor: "color-mix(in srgb, var(--bad) 25%, transparent)",
  },
  "&.cm-merge-b .cm-changedText": {
    background: "none",
    backgroundColor: "color-mix(in srgb, var(--ok) 25%, transparent)",
  },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { background: "var(--bad)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--ok)" },
  ".cm-changedText, .cm-changedText *, .cm-deletedText, .cm-deletedText *": { color: "var(--text)" },
  ".cm-deletedChunk": { paddingLeft: "var(--s1)" },
});

export const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--run)", fontWeight: "500" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null, tags.literal], color: "var(--warn)" },
  { tag: [tags.typeName, tags.standard(tags.name), tags.labelName], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--text-3)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.operator], color: "var(--text-2)" },
  { tag: tags.special(tags.name), color: "var(--warn)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);
