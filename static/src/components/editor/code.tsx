import { setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, type Text, type TransactionSpec } from "@codemirror/state";
import { EditorView, placeholder } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import { shownTheme } from "../../browser/theme";
import type { EditorHandle, EditorProps, Mark } from "./index";
import { languageOf, named, reading, writing } from "./setup";

/** The smallest single change between two texts, so that cursor and scroll position stay. */
function smallestChange(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before[from] === after[from]) from += 1;
  let end = 0;
  while (end < most - from && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) };
}

function diagnosticsOf(marks: Mark[], doc: Text): Diagnostic[] {
  return marks.map(({ from, to, severity, message }) => {
    const start = Math.min(Math.max(0, from), doc.length);
    return { from: start, to: Math.min(Math.max(start, to), doc.length), severity, message };
  });
}

function handleOf(view: EditorView): EditorHandle {
  return {
    focus: () => view.focus(),
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text), { scrollIntoView: true });
      view.focus();
    },
    reveal: (line, column = 1) => {
      const { doc } = view.state;
      const at = doc.line(Math.min(Math.max(1, line), doc.lines));
      const anchor = Math.min(at.to, at.from + Math.max(0, column - 1));
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
      view.focus();
    },
    revealRange: (from, to = from) => {
      const [anchor, head] = [Math.min(from, view.state.doc.length), Math.min(to, view.state.doc.length)];
      view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
      view.focus();
    },
    selection: () => view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to),
    cursor: () => view.state.selection.main.head,
  };
}

/** Maximum number of pending echoes. */
const ECHOES_MAX = 200;

/** Attaches a shadow root, whose adopted style sheets the content policy allows. */
export function shadowOf(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: "open" });
}

export const darkness = () => EditorView.darkTheme.of(shownTheme.value === "dark");

function made(
  host: HTMLElement,
  now: () => EditorProps,
  onEdit: (text: string) => void,
  parts: Record<"dark" | "lock" | "language" | "name", Compartment>,
) {
  const props = now();
  const root = shadowOf(host);
  const view = new EditorView({
    root,
    parent: root,
    doc: props.value,
    extensions: [
      parts.dark.of(darkness()),
      parts.lock.of(EditorState.readOnly.of(props.readOnly ?? false)),
      parts.name.of(named(props.label)),
      reading,
      writing(now),
      parts.language.of(languageOf(props.language, now)),
      placeholder(props.placeholder ?? ""),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.isUserEvent("outside")))
          onEdit(update.state.doc.toString());
        if (update.selectionSet || update.docChanged) now().onCursor?.(update.state.selection.main.head);
      }),
    ],
  });
  return view;
}

export default function CodeEditor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>();
  const latest = useRef(props);
  latest.current = props;
  const parts = useRef({
    dark: new Compartment(),
    lock: new Compartment(),
    language: new Compartment(),
    name: new Compartment(),
  });
  const dark = shownTheme.value;
  /** Texts reported by `onChange` that haven't come back as `value` yet; those are echoes, not updates. */
  const emitted = useRef<string[]>([]);

  useEffect(() => {
    if (!host.current) return undefined;
    const onEdit = (text: string) => {
      emitted.current = [...emitted.current, text].slice(-ECHOES_MAX);
      latest.current.onChange?.(text);
    };
    const editor = made(host.current, () => latest.current, onEdit, parts.current);
    view.current = editor;
    latest.current.handle?.(handleOf(editor));
    return () => editor.destroy();
  }, []);

  const dispatch = (spec: TransactionSpec) => view.current?.dispatch(spec);
  useEffect(() => {
    const editor = view.current;
    const echo = emitted.current.lastIndexOf(props.value);
    emitted.current = emitted.current.slice(echo + 1);
    if (!editor || echo >= 0) return;
    const before = editor.state.doc.toString();
    if (before !== props.value) dispatch({ changes: smallestChange(before, props.value), userEvent: "outside" });
  }, [props.value]);
  useEffect(() => {
    const editor = view.current;
    if (editor) dispatch(setDiagnostics(editor.state, diagnosticsOf(props.marks ?? [], editor.state.doc)));
  }, [props.marks]);
  useEffect(() => dispatch({ effects: parts.current.dark.reconfigure(darkness()) }), [dark]);
  useEffect(
    () => dispatch({ effects: parts.current.lock.reconfigure(EditorState.readOnly.of(props.readOnly ?? false)) }),
    [props.readOnly],
  );
  useEffect(() => dispatch({ effects: parts.current.name.reconfigure(named(props.label)) }), [props.label]);
  useEffect(
    () => dispatch({ effects: parts.current.language.reconfigure(languageOf(props.language, () => latest.current)) }),
    [props.language],
  );

  return <div ref={host} class="editor-host" />;
}
