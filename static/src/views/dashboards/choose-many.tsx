import { Check, ChevronDown } from "lucide-preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../../components/button";
import { count } from "../../format/number";
import { EMPTY } from "../../format/values";
import type { Choice, Scalar } from "./document";

/** Maximum number of listed options. */
const SHOWN_MAX = 200;

interface Props {
  label: string;
  title?: string;
  options: Choice[];
  multiple: boolean;
  chosen: Scalar[];
  onChoose: (values: Scalar[]) => void;
}

const same = (a: Scalar, b: Scalar): boolean => a === b || String(a) === String(b);

/** Select with search: arrows move, Enter or Space selects, Esc closes. */
export function ChooseMany({ label, title, options, multiple, chosen, onChoose }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef<HTMLButtonElement>(null);
  const id = useId();

  useEffect(() => {
    if (!open) return undefined;
    const leave = (event: Event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    // Also if the focus is outside of it, as after a click on an option.
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      setOpen(false);
      anchor.current?.focus();
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("keydown", key);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("keydown", key);
    };
  }, [open]);

  const close = () => {
    setOpen(false);
    anchor.current?.focus();
  };
  const labelOf = (value: Scalar) => options.find((one) => same(one.value, value))?.label ?? String(value);
  const [first] = chosen;
  const chosenText =
    first === undefined ? "Any" : chosen.length === 1 ? labelOf(first) : `${count(chosen.length)} selected`;
  return (
    <div class="field dash-choose" ref={box}>
      <span id={`${id}-label`} class="dash-choose-label" title={title}>
        {label}
      </span>
      <Button
        buttonRef={anchor}
        id={`${id}-button`}
        class="dash-choose-button"
        aria-labelledby={`${id}-label ${id}-button`}
        aria-haspopup="listbox"
        aria-expanded={open}
        title={chosen.map(labelOf).join(", ")}
        onClick={() => setOpen(!open)}
      >
        <span class="grow cut">{chosenText}</span>
        <ChevronDown />
      </Button>
      {open && <Options {...{ id, label, options, multiple, chosen, onChoose, close }} />}
    </div>
  );
}

function Options({
  id,
  label,
  options,
  multiple,
  chosen,
  onChoose,
  close,
}: Omit<Props, "title"> & { id: string; close: () => void }) {
  const [search, setSearch] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted ? options.filter((one) => one.label.toLowerCase().includes(wanted)) : options;
  }, [options, search]);
  const shown = found.slice(0, SHOWN_MAX);
  const isChosen = (value: Scalar) => chosen.some((one) => same(one, value));
  const choose = (value: Scalar) => {
    if (!multiple) {
      onChoose(isChosen(value) ? [] : [value]);
      close();
    } else onChoose(isChosen(value) ? chosen.filter((one) => !same(one, value)) : [...chosen, value]);
  };
  const pressed = (event: KeyboardEvent) => {
    const option = shown[at];
    if (event.key === "ArrowDown") setAt(Math.min(shown.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter" && option) choose(option.value);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="dash-choose-list" onKeyDown={pressed}>
      <input
        ref={input}
        class="input"
        role="combobox"
        aria-label={`Search ${label}`}
        aria-expanded="true"
        aria-controls={`${id}-options`}
        aria-activedescendant={shown[at] ? `${id}-${at}` : undefined}
        placeholder="Search"
        value={search}
        onInput={(event) => {
          setSearch(event.currentTarget.value);
          setAt(0);
        }}
      />
      <ul id={`${id}-options`} role="listbox" aria-label={label} aria-multiselectable={multiple}>
        {shown.map(({ value, label: text }, index) => (
          <li
            key={String(value)}
            id={`${id}-${index}`}
            role="option"
            aria-selected={isChosen(value)}
            class={index === at ? "at" : ""}
            onClick={() => choose(value)}
          >
            {isChosen(value) ? <Check aria-hidden="true" /> : <span class="dash-choose-blank" />}
            <span class={text === EMPTY ? "cut dim" : "cut"}>{text}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="dim">No matching options.</p>}
      {found.length > shown.length && (
        <p class="dim">
          {count(shown.length)} of {count(found.length)}. Type to search.
        </p>
      )}
      {chosen.length > 0 && (
        <Button variant="quiet" onClick={() => onChoose([])}>
          Clear
        </Button>
      )}
    </div>
  );
}
