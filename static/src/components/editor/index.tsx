import type { Completion } from "@codemirror/autocomplete";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failed } from "../states";
import type { Offers } from "./suggest";
import "./editor.css";

export { pathAt, pointerRange } from "./tree";

/** A mark in the text, with what is wrong there. Offsets are in characters from the text's start. */
export interface Mark {
  from: number;
  to: number;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface EditorHandle {
  focus: () => void;
  /** Puts text in place of what is selected. */
  insert: (text: string) => void;
  /** Shows a line, counted from 1, and puts the cursor there. */
  reveal: (line: number, column?: number) => void;
  /** Shows a range by its offsets, and selects it. */
  revealRange: (from: number, to?: number) => void;
  selection: () => string;
  /** The cursor's offset. */
  cursor: () => number;
}

export interface EditorProps {
  /** What is edited, for screen readers. */
  label: string;
  language: "sql" | "json" | "yaml";
  value: string;
  onChange?: (value: string) => void;
  marks?: Mark[];
  /** JSON Schema for completion and hover (`json`, `yaml`). */
  schema?: unknown;
  /** `json`, `yaml`: values at a path that no schema knows, e.g. names of columns. */
  offers?: Offers;
  /** `sql`: tables with their columns. */
  tables?: Record<string, Completion[]>;
  readOnly?: boolean;
  placeholder?: string;
  /** Ctrl/Cmd+Enter. */
  onSubmit?: () => void;
  /** Ctrl/Cmd+S. */
  onSave?: () => void;
  /** The cursor has moved to this offset. */
  onCursor?: (offset: number) => void;
  /** In pixels; without it the editor fills its parent. */
  height?: number;
  handle?: (handle: EditorHandle) => void;
}

export interface DiffProps {
  label: string;
  language: "json" | "yaml" | "sql";
  before: string;
  after: string;
  /** What the two are called, above them. */
  beforeName?: string | undefined;
  afterName?: string | undefined;
  /** In pixels; without it it fills its parent. */
  height?: number;
}

interface Loaded {
  Code: ComponentType<EditorProps>;
  Comparison: ComponentType<DiffProps>;
}

let loaded: Loaded | undefined;

async function load(): Promise<Loaded> {
  const [code, comparison] = await Promise.all([import("./code"), import("./compare")]);
  loaded = { Code: code.default, Comparison: comparison.default };
  return loaded;
}

/** The editors' code, loaded when the first is shown. */
function useEditors(): { editors: Loaded | undefined; error: unknown; retry: () => void } {
  const [editors, setEditors] = useState(loaded);
  const [error, setError] = useState<unknown>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (editors) return undefined;
    let gone = false;
    load().then(
      (found) => gone || setEditors(found),
      (thrown: unknown) => gone || setError(thrown),
    );
    return () => {
      gone = true;
    };
  }, [tries, editors]);
  const retry = () => {
    setError(undefined);
    setTries(tries + 1);
  };
  return { editors, error, retry };
}

function Waiting({ error, retry, label }: { error: unknown; retry: () => void; label: string }) {
  if (error) return <Failed title="Couldn't load the editor" error={error} onRetry={retry} />;
  return <div class="editor-waiting" role="status" aria-label={`Loading ${label}`} />;
}

const sized = (height: number | undefined) => (height === undefined ? { height: "100%" } : { height: `${height}px` });

/** A text editor (CodeMirror, in a shadow root since it writes style sheets); loaded when the first is shown. */
export function Editor(props: EditorProps) {
  const { editors, error, retry } = useEditors();
  return (
    <div class="editor" style={sized(props.height)}>
      {editors ? <editors.Code {...props} /> : <Waiting label={props.label} error={error} retry={retry} />}
    </div>
  );
}

/** Two texts side by side (one below the other where it is narrow), with what differs marked and the rest folded. */
export function Diff(props: DiffProps) {
  const { editors, error, retry } = useEditors();
  return (
    <div class="editor" style={sized(props.height)}>
      {editors ? <editors.Comparison {...props} /> : <Waiting label={props.label} error={error} retry={retry} />}
    </div>
  );
}
