import type { Completion } from "@codemirror/autocomplete";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failed } from "../states";
import type { Offers } from "./suggest";
import "./editor.css";

export { pathAt, pointerRange } from "./tree";

/** A diagnostic. Offsets are in characters. */
export interface Mark {
  from: number;
  to: number;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface EditorHandle {
  focus: () => void;
  /** Replaces the selection. */
  insert: (text: string) => void;
  /** Scrolls to a line, counted from 1, and moves the cursor there. */
  reveal: (line: number, column?: number) => void;
  /** Scrolls to a range and selects it. */
  revealRange: (from: number, to?: number) => void;
  selection: () => string;
  /** Offset of the cursor. */
  cursor: () => number;
}

export interface EditorProps {
  /** Accessible name. */
  label: string;
  language: "sql" | "json" | "yaml";
  value: string;
  onChange?: (value: string) => void;
  marks?: Mark[];
  /** JSON Schema for completion and hover (`json`, `yaml`). */
  schema?: unknown;
  /** `json`, `yaml`: values that the schema can't know, such as column names. */
  offers?: Offers;
  /** `sql`: tables and their columns. */
  tables?: Record<string, Completion[]>;
  readOnly?: boolean;
  placeholder?: string;
  /** Ctrl/Cmd+Enter. */
  onSubmit?: () => void;
  /** Ctrl/Cmd+S. */
  onSave?: () => void;
  /** Called with the new offset of the cursor. */
  onCursor?: (offset: number) => void;
  /** In pixels; default: the height of the parent. */
  height?: number;
  handle?: (handle: EditorHandle) => void;
}

export interface DiffProps {
  label: string;
  language: "json" | "yaml" | "sql";
  before: string;
  after: string;
  /** Titles of the two sides. */
  beforeName?: string | undefined;
  afterName?: string | undefined;
  /** In pixels; default: the height of the parent. */
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

/** Loads the editor chunk with the first editor. */
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

/** CodeMirror editor in a shadow root (it creates style sheets), loaded on demand. */
export function Editor(props: EditorProps) {
  const { editors, error, retry } = useEditors();
  return (
    <div class="editor" style={sized(props.height)}>
      {editors ? <editors.Code {...props} /> : <Waiting label={props.label} error={error} retry={retry} />}
    </div>
  );
}

/** Diff of two texts, side by side or stacked, with unchanged parts folded. */
export function Diff(props: DiffProps) {
  const { editors, error, retry } = useEditors();
  return (
    <div class="editor" style={sized(props.height)}>
      {editors ? <editors.Comparison {...props} /> : <Waiting label={props.label} error={error} retry={retry} />}
    </div>
  );
}
