import type { Completion } from "@codemirror/autocomplete";

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
  selection: () => string;
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
  /** `sql`: tables with their columns. */
  tables?: Record<string, Completion[]>;
  readOnly?: boolean;
  /** Ctrl/Cmd+Enter. */
  onSubmit?: () => void;
  /** Ctrl/Cmd+S. */
  onSave?: () => void;
  /** In pixels; without it the editor fills its parent. */
  height?: number;
  handle?: (handle: EditorHandle) => void;
}

/** A text editor (CodeMirror, in a shadow root since it writes style sheets); loaded when the first is shown. */
export function Editor({ label, value, onChange, readOnly }: EditorProps) {
  return (
    <textarea
      class="input mono"
      aria-label={label}
      value={value}
      readOnly={readOnly ?? false}
      onInput={(event) => onChange?.(event.currentTarget.value)}
    />
  );
}

/** Two texts side by side, with what differs marked. */
export function Diff({
  label,
  before,
  after,
}: {
  label: string;
  language: "json" | "yaml" | "sql";
  before: string;
  after: string;
}) {
  return (
    <pre aria-label={label}>
      {before}
      {after}
    </pre>
  );
}
