import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { GridColumn } from "../../components/grid";
import {
  CHOICES,
  choicesFor,
  fieldOf,
  filtersOf,
  hintOf,
  takesValue,
  wordsOf,
  type Choice,
  type Filter,
} from "../../format/filter";

/** Delay before a filter is applied, in milliseconds. */
const TYPED_MS = 450;
const WHY_GAP_PX = 4;

interface Props {
  column: GridColumn;
  /** Filters on this column. */
  filters: Filter[];
  /** The number format that signs in its sources say. */
  unit?: string | undefined;
  /** Why the service refused them. */
  refused?: string | undefined;
  onChange: (filters: Filter[]) => void;
}

/** Error below the field, above the clipping header. */
function Why({ id, text }: { id: string; text: string }) {
  const node = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const [own, field] = [node.current, node.current?.parentElement];
    if (!own || !field) return undefined;
    const place = () => {
      const at = field.getBoundingClientRect();
      own.style.top = `${at.bottom + WHY_GAP_PX}px`;
      own.style.left = `${Math.max(WHY_GAP_PX, Math.min(at.left, window.innerWidth - own.offsetWidth - WHY_GAP_PX))}px`;
    };
    own.showPopover();
    place();
    document.addEventListener("scroll", place, { capture: true, passive: true });
    window.addEventListener("resize", place);
    return () => {
      document.removeEventListener("scroll", place, { capture: true });
      window.removeEventListener("resize", place);
    };
  }, [text]);
  return (
    <span ref={node} id={id} class="data-filter-why" role="alert" popover="manual">
      {text}
    </span>
  );
}

/** Filter on one column: operator and value. */
export function FilterField({ column, filters, unit, refused, onChange }: Props) {
  const { name, type } = column;
  const choices = choicesFor(type);
  const why = useId();
  const state = fieldOf(filters, unit);
  const [draft, setDraft] = useState<{ choice: Choice; text: string }>();
  const [mistake, setMistake] = useState<string>();
  // A refusal applies to the current filter, not to new input.
  const error = mistake ?? (draft ? undefined : refused);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const choice = draft?.choice ?? state?.choice ?? choices[0] ?? "contains";
  const text = draft?.text ?? state?.text ?? "";
  const applied = JSON.stringify(filters);

  // The input was applied, or the filters changed elsewhere.
  useEffect(() => {
    setDraft(undefined);
    setMistake(undefined);
  }, [applied]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const apply = (next: { choice: Choice; text: string }) => {
    clearTimeout(timer.current);
    try {
      const found = filtersOf(name, type, next.choice, next.text, unit);
      setMistake(undefined);
      if (JSON.stringify(found) !== applied) onChange(found);
    } catch (thrown) {
      setMistake(thrown instanceof Error ? thrown.message : String(thrown));
    }
  };
  const typed = (next: { choice: Choice; text: string }) => {
    setDraft(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(next), TYPED_MS);
  };
  const wrong = error ? { "aria-invalid": true, "aria-describedby": why } : {};

  return (
    <span class={`data-filter ${state || text ? "set" : ""} ${error ? "wrong" : ""}`} title={error}>
      <span class="data-filter-choice">
        <span aria-hidden="true">{CHOICES[choice].sign}</span>
        <select
          aria-label={`Operator for ${name}`}
          title={wordsOf(choice, type)}
          value={choice}
          onChange={(event) => {
            const next = { choice: event.currentTarget.value as Choice, text };
            setDraft(next);
            if (!takesValue(next.choice) || text !== "" || state) apply(next);
          }}
        >
          {choices.map((one) => (
            <option key={one} value={one}>
              {wordsOf(one, type)}
            </option>
          ))}
        </select>
      </span>
      {type === "boolean" && takesValue(choice) ? (
        <select
          aria-label={`Filter ${name}`}
          {...wrong}
          value={text}
          onChange={(event) => apply({ choice, text: event.currentTarget.value })}
        >
          <option value="">any</option>
          <option value="true">true</option>
          <option value="false">false</option>
        </select>
      ) : (
        takesValue(choice) && (
          <input
            type="text"
            aria-label={`Filter ${name}`}
            {...wrong}
            autocomplete="off"
            spellcheck={false}
            placeholder={hintOf(type, choice, unit)}
            value={text}
            onInput={(event) => typed({ choice, text: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Enter") apply({ choice, text: event.currentTarget.value });
              else if (event.key === "Escape" && text !== "") {
                typed({ choice, text: "" });
                apply({ choice, text: "" });
              } else return;
              event.preventDefault();
              event.stopPropagation();
            }}
            onBlur={() => draft && apply(draft)}
          />
        )
      )}
      {!takesValue(choice) && (
        <button type="button" class="data-filter-null" onClick={() => onChange([])} title="Remove filter">
          {wordsOf(choice, type)} ×
        </button>
      )}
      {error && <Why id={why} text={error} />}
    </span>
  );
}
