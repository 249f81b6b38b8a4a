/** Controls of filters (parameters of the document), by type. */
import { useEffect, useRef, useState } from "preact/hooks";
import { DayField } from "../../components/day-field";
import { SelectField, TextField } from "../../components/field";
import { ChooseMany } from "./choose-many";
import { numberOf } from "../../format/filter";
import type { Choice, Param, ParamOf, Scalar } from "./document";
import { DAYS, RANGES, type Range } from "../../boards/presets";
import type { Chosen } from "./values";

/** Delay before typing is applied, in milliseconds. */
const DEBOUNCE_MS = 600;

interface ControlProps<P extends Param = Param> {
  param: P;
  /** The effective value: chosen or default. */
  value: unknown;
  options: Choice[] | undefined;
  onChoose: (value: Chosen) => void;
}

/** Text that is applied after a pause, on Enter, or on blur. */
function useDebouncedText(value: string, onDone: (text: string) => void) {
  const [typed, setTyped] = useState<string>();
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const done = (text: string | undefined) => {
    window.clearTimeout(timer.current);
    setTyped(undefined);
    if (text !== undefined && text !== value) onDone(text);
  };
  return {
    text: typed ?? value,
    type: (text: string) => {
      setTyped(text);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => done(text), DEBOUNCE_MS);
    },
    done: () => done(typed),
  };
}

function TextControl({ param, value, onChoose }: ControlProps<ParamOf<"text">>) {
  const typed = useDebouncedText(typeof value === "string" ? value : "", (text) => onChoose(text === "" ? null : text));
  return (
    <TextField
      label={param.title}
      title={param.description}
      placeholder={param.placeholder}
      value={typed.text}
      onInput={(event) => typed.type(event.currentTarget.value)}
      onBlur={typed.done}
      onKeyDown={(event) => event.key === "Enter" && typed.done()}
    />
  );
}

/** A number as people write it: `1,234.5`, `$5` or `10%`, which is 0.1; NaN if it isn't one. */
const numberIn = (text: string): number => Number(numberOf(text.trim()) ?? text);

/** Validation message of a number, if any. */
function numberProblem(param: ParamOf<"number">, text: string): string | undefined {
  if (text.trim() === "") return undefined;
  const number = numberIn(text);
  if (!Number.isFinite(number)) return `${text} isn't a number.`;
  if (param.integer && !Number.isInteger(number)) return "Enter a whole number.";
  if (param.min !== undefined && number < param.min) return `Enter at least ${param.min}.`;
  if (param.max !== undefined && number > param.max) return `Enter at most ${param.max}.`;
  return undefined;
}

function NumberControl({ param, value, onChoose }: ControlProps<ParamOf<"number">>) {
  const [refused, setRefused] = useState<string>();
  const typed = useDebouncedText(typeof value === "number" ? String(value) : "", (text) => {
    const problem = numberProblem(param, text);
    setRefused(problem && text);
    if (!problem) onChoose(text.trim() === "" ? null : numberIn(text));
  });
  const text = refused ?? typed.text;
  return (
    <TextField
      label={param.title}
      title={param.description}
      // Steps need a field that has no text such as 10%.
      type={param.step !== undefined || param.integer ? "number" : "text"}
      inputMode={param.integer ? "numeric" : "decimal"}
      min={param.min}
      max={param.max}
      step={param.step ?? (param.integer ? 1 : "any")}
      value={text}
      error={refused === undefined ? undefined : numberProblem(param, refused)}
      onInput={(event) => {
        setRefused(undefined);
        typed.type(event.currentTarget.value);
      }}
      onBlur={typed.done}
      onKeyDown={(event) => event.key === "Enter" && typed.done()}
    />
  );
}

const scalars = (value: unknown): Scalar[] =>
  (Array.isArray(value) ? value : value === null || value === undefined ? [] : [value]) as Scalar[];

function SelectControl({ param, value, options, onChoose }: ControlProps<ParamOf<"select">>) {
  const choose = (values: Scalar[]) =>
    onChoose(param.multiple ? (values.length > 0 ? values : null) : (values[0] ?? null));
  return (
    <ChooseMany
      label={param.title}
      title={param.description}
      options={options ?? param.options ?? []}
      multiple={param.multiple}
      chosen={scalars(value)}
      onChoose={choose}
    />
  );
}

function DateControl({ param, value, onChoose }: ControlProps<ParamOf<"date">>) {
  const text = typeof value === "string" ? value : "";
  return (
    <div class="dash-date">
      <DayField
        label={param.title}
        title={param.description}
        min={param.min}
        max={param.max}
        value={text}
        onDay={(day) => onChoose(day || null)}
      />
      <SelectField
        bare
        label={`${param.title}, relative to today`}
        value=""
        onChange={(event) => event.currentTarget.value && onChoose(event.currentTarget.value)}
      >
        <option value="">Custom day</option>
        {Object.entries(DAYS).map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </SelectField>
    </div>
  );
}

const CUSTOM = "custom";
const NONE = "none";

function RangeControl({ param, value, onChoose }: ControlProps<ParamOf<"date_range">>) {
  const range = (value ?? undefined) as (Range & { preset?: string | null }) | undefined;
  const presets = param.presets.length > 0 ? param.presets : Object.keys(RANGES);
  // Empty until the service reports the default.
  const [half, setHalf] = useState<Range>();
  const picked = half ? CUSTOM : range ? (range.preset ?? CUSTOM) : value === undefined ? CUSTOM : NONE;
  const shown = half ?? range;
  const set = (part: Partial<Range>) => {
    const next = { start: shown?.start ?? "", end: shown?.end ?? "", ...part };
    const isHalf = !next.start || !next.end;
    setHalf(isHalf && (next.start || next.end) ? next : undefined);
    if (!next.start && !next.end) onChoose(null);
    if (isHalf) return;
    // Moving one end past the other moves both.
    if (next.start > next.end)
      onChoose(part.start ? { start: next.start, end: next.start } : { start: next.end, end: next.end });
    else onChoose({ start: next.start, end: next.end });
  };
  return (
    <div class="dash-range" role="group" aria-label={param.title} title={param.description}>
      <SelectField
        label={param.title}
        value={picked}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          setHalf(undefined);
          if (chosen === NONE) onChoose(null);
          else if (chosen !== CUSTOM) onChoose(chosen);
        }}
      >
        <option value={CUSTOM} disabled={!shown}>
          Custom range
        </option>
        {presets.map((name) => (
          <option key={name} value={name}>
            {RANGES[name] ?? name}
          </option>
        ))}
        {range?.preset && !presets.includes(range.preset) && (
          <option value={range.preset}>{RANGES[range.preset] ?? range.preset}</option>
        )}
        <option value={NONE}>Any day</option>
      </SelectField>
      {range?.preset !== "all" && (
        <>
          <DayField
            label="From"
            aria-label={`${param.title}, from`}
            min={param.min}
            max={param.max}
            value={shown?.start ?? ""}
            error={half && !half.start ? "Enter a first day." : undefined}
            onDay={(day) => set({ start: day })}
          />
          <DayField
            label="To"
            aria-label={`${param.title}, to`}
            min={param.min}
            max={param.max}
            value={shown?.end ?? ""}
            error={half && !half.end ? "Enter a last day." : undefined}
            onDay={(day) => set({ end: day })}
          />
        </>
      )}
    </div>
  );
}

export function Control({ param, ...rest }: ControlProps) {
  switch (param.type) {
    case "text":
      return <TextControl param={param} {...rest} />;
    case "number":
      return <NumberControl param={param} {...rest} />;
    case "select":
      return <SelectControl param={param} {...rest} />;
    case "date":
      return <DateControl param={param} {...rest} />;
    case "date_range":
      return <RangeControl param={param} {...rest} />;
  }
}
