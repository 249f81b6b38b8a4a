import { useQuery } from "@tanstack/preact-query";
import { Plus, X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { keys } from "../../api/queries";
import type { Row } from "../../api/types";
import { Button } from "../../components/button";
import { DayField } from "../../components/day-field";
import { SelectField, TextField } from "../../components/field";
import {
  type Choice,
  choicesFor,
  emptyFilters,
  fieldOf,
  type Filter,
  filtersOf,
  hasEnds,
  hintOf,
  RangeMistake,
  rangeOf,
  shownValue,
  takesValue,
  wordsOf,
} from "../../format/filter";
import { EMPTY, isNumeric, plain, timeWritten, written } from "../../format/values";
import { daysOfRange, RANGES } from "../presets";
import type { Known } from "./change";
import type { ChartChoice } from "./choice";
import { ran } from "../../api/sql";
import { valuesSql } from "./statement";

interface Props {
  slug: string;
  choice: ChartChoice;
  known: Known;
  filled: ((sql: string) => string) | undefined;
  onChange: (choice: ChartChoice) => void;
  /** Told whether the form has a filter that isn't applied. */
  onPending: (pending: boolean) => void;
}

type Typed = Filter & { type: string };
const SUGGESTED_MAX = 100;

/** Filters as they are shown and edited: both ends of a range together. */
function grouped(filters: readonly Typed[]): Typed[][] {
  const groups: Typed[][] = [];
  for (const filter of filters) {
    const [before, ...more] = groups.at(-1) ?? [];
    const isRange = before?.column === filter.column && before.operator === "ge" && filter.operator === "le";
    if (before && isRange && more.length === 0) groups[groups.length - 1] = [before, filter];
    else groups.push([filter]);
  }
  return groups;
}

const unitOf = ({ profile }: Known, name: string | undefined) => profile.columns.find((one) => one.name === name)?.unit;

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text);
const hasDays = (type: string): boolean => /^(?:date|timestamp)/.test(type);

/** Charts call null empty. */
const operatorText = (choice: Choice, type: string): string => wordsOf(choice, type).replace("null", "empty");

/** `date from May 1, 2024 to May 31, 2024`. */
function text(group: Typed[], unit?: string): string {
  const [{ column, type } = { column: "", type: "" }] = group;
  const state = fieldOf(group, unit);
  if (!state) return column;
  const value = (one: string) => (isDay(one) && hasDays(type) ? written(one, "date", type) : one);
  if (hasEnds(state.choice)) {
    const [from = "", to = ""] = state.text.split(" .. ");
    return `${column} ${state.choice === "outside" ? "not from" : "from"} ${value(from)} to ${value(to)}`;
  }
  return `${column} ${operatorText(state.choice, type)}${takesValue(state.choice) ? ` ${value(state.text)}` : ""}`;
}

function withFilters(choice: ChartChoice, filters: Typed[]): ChartChoice {
  const rest = { ...choice };
  delete rest.filters;
  return filters.length > 0 ? { ...rest, filters } : rest;
}

/** Filters of the rows, and a form for one of them. */
export function Filters({ slug, choice, known, filled, onChange, onPending }: Props) {
  /** Index of the filter being edited; that after the last one for a new one. */
  const [open, setOpen] = useState<number>();
  const groups = grouped(choice.filters ?? []);
  const put = (at: number, filters: Typed[]) => {
    setOpen(undefined);
    onChange(withFilters(choice, groups.toSpliced(at, 1, filters).flat()));
  };
  const form = (at: number) => (
    <FilterForm
      key={at}
      {...{ slug, choice, known, filled, onPending }}
      start={groups[at]}
      onCancel={() => setOpen(undefined)}
      onDone={(filters) => put(at, filters)}
    />
  );
  return (
    <div class="build-filters">
      {groups.map((group, at) => {
        if (open === at) return form(at);
        const label = text(group, unitOf(known, group[0]?.column));
        return (
          <span key={`${at}${label}`} class="build-filter">
            <button type="button" class="cut" title="Edit filter" onClick={() => setOpen(at)}>
              {label}
            </button>
            <button type="button" aria-label={`Remove filter ${label}`} onClick={() => put(at, [])}>
              <X aria-hidden="true" />
            </button>
          </span>
        );
      })}
      {open === undefined && (
        <Button variant="quiet" icon={<Plus />} onClick={() => setOpen(groups.length)}>
          Add filter
        </Button>
      )}
      {open === groups.length && form(open)}
    </div>
  );
}

interface FormProps extends Omit<Props, "onChange"> {
  /** The filter that is edited. */
  start: Typed[] | undefined;
  onDone: (filters: Typed[]) => void;
  onCancel: () => void;
}

/** What the form holds; `from` is the value of operators that take one. */
interface Entered {
  operator: Choice;
  from: string;
  to: string;
}

/** A range first, where there is one. */
const usualOf = (type: string): Choice => {
  const offered = choicesFor(type);
  return offered.includes("between") ? "between" : (offered[0] ?? "eq");
};

function enteredOf(start: Typed[] | undefined, type: string, unit?: string): Entered {
  const state = fieldOf(start ?? [], unit);
  if (!state) return { operator: usualOf(type), from: "", to: "" };
  const [from = "", to = ""] = hasEnds(state.choice) ? state.text.split(" .. ") : [state.text];
  return { operator: state.choice, from, to };
}

function FilterForm({ slug, choice, known, filled, start, onDone, onCancel, onPending }: FormProps) {
  const { columns } = known;
  const [name, setName] = useState(start?.[0]?.column ?? columns[0]?.name ?? "");
  const typeOf = (column: string) => columns.find((one) => one.name === column)?.type ?? "string";
  const type = typeOf(name);
  const unit = unitOf(known, name);
  const [entered, setEntered] = useState(enteredOf(start, type, unit));
  const [mistake, setMistake] = useState<{ end: "from" | "to"; text: string }>();
  const { operator, from, to } = entered;
  const isRange = hasEnds(operator);
  const [first] = useState(entered);
  const isPending = JSON.stringify(entered) !== JSON.stringify(first) && (from + to !== "" || !takesValue(operator));
  useEffect(() => {
    onPending(isPending);
    return () => onPending(false);
  }, [isPending, onPending]);
  const change = (part: Partial<Entered>) => {
    setEntered({ ...entered, ...part });
    setMistake(undefined);
  };
  const submit = (event: Event & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    // A date that isn't whole has no value; its field says so.
    if (event.currentTarget.querySelector('[type="date"]:invalid')) return;
    try {
      const found = isRange
        ? rangeOf(name, type, from, to, operator, unit)
        : (emptyFilters(name, type, operator, from, unit) ?? filtersOf(name, type, operator, from, unit));
      if (found.length > 0) onDone(found.map((filter) => ({ ...filter, type })));
      else setMistake({ end: "from", text: "Enter a value." });
    } catch (thrown) {
      const end = thrown instanceof RangeMistake ? thrown.end : "from";
      setMistake({ end, text: thrown instanceof Error ? thrown.message : String(thrown) });
    }
  };
  const value = (end: "from" | "to", label: string) => (
    <Value
      {...{ label, type, operator }}
      unit={unit}
      value={entered[end]}
      error={mistake?.end === end ? mistake.text : undefined}
      onValue={(next) => change({ [end]: next })}
      values={<Values {...{ slug, choice, filled, name, unit }} />}
    />
  );
  return (
    <form class="build-new-filter" aria-label={start ? "Filter" : "New filter"} noValidate onSubmit={submit}>
      <SelectField
        label="Filter column"
        value={name}
        autofocus
        onChange={(event) => {
          const next = event.currentTarget.value;
          setName(next);
          change({ operator: usualOf(typeOf(next)), from: "", to: "" });
        }}
      >
        {columns.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Operator"
        value={operator}
        onChange={(event) => change({ operator: event.currentTarget.value as Choice })}
      >
        {choicesFor(type).map((one) => (
          <option key={one} value={one}>
            {operatorText(one, type)}
          </option>
        ))}
      </SelectField>
      {isRange && hasDays(type) && (
        <SelectField
          label="Days"
          value={presetOf(from, to)}
          onChange={(event) => {
            const range = daysOfRange(event.currentTarget.value);
            if (range) change({ from: range.start, to: range.end });
          }}
        >
          <option value="">Custom range</option>
          {PRESETS.map((one) => (
            <option key={one} value={one}>
              {RANGES[one]}
            </option>
          ))}
        </SelectField>
      )}
      {takesValue(operator) && value("from", isRange ? "From" : "Value")}
      {isRange && value("to", "To")}
      <div class="row">
        <Button variant="quiet" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit">{start ? "Change" : "Add"}</Button>
      </div>
      {isPending && <p class="field-hint">The filter applies after you {start ? "change" : "add"} it.</p>}
      <Extent name={name} type={type} known={known} isRange={isRange} />
    </form>
  );
}

const PRESETS = Object.keys(RANGES).filter((name) => name !== "all");
const presetOf = (from: string, to: string): string =>
  PRESETS.find((name) => {
    const range = daysOfRange(name);
    return range?.start === from && range.end === to;
  }) ?? "";

/** The values that the column has, to know what a range may be. */
function Extent({ name, type, known, isRange }: { name: string; type: string; known: Known; isRange: boolean }) {
  const column = known.profile.columns.find((one) => one.name === name);
  if (!isRange || column?.min === undefined || column.max === undefined) return null;
  const [least, most] = [column.min, column.max].map((one) =>
    isNumeric(type)
      ? written(one, column.unit === "percent" ? "percentage" : undefined, type)
      : hasDays(type)
        ? timeWritten(one, "date")
        : "",
  );
  if (!least || !most) return null;
  return (
    <p class="field-hint">
      {name} goes from {least} to {most}.{" "}
      {hasDays(type) && "The days stay the same; for a range that viewers choose, add a filter to the dashboard."}
    </p>
  );
}

interface ValueProps {
  label: string;
  type: string;
  unit: string | undefined;
  operator: Choice;
  value: string;
  error: string | undefined;
  onValue: (value: string) => void;
  /** Suggestions, as `option` elements. */
  values: ComponentChildren;
}

function Value({ label, type, unit, operator, value, error, onValue, values }: ValueProps) {
  const list = useId();
  const shared = { label, value, error };
  const isDays = hasDays(type) && operator !== "starts_with" && (value === "" || isDay(value));
  const isExact = operator === "eq" || operator === "ne";
  if (isDays && (type === "date" || !isExact)) return <DayField {...shared} onDay={onValue} />;
  if (type === "boolean")
    return (
      <SelectField {...shared} onChange={(event) => onValue(event.currentTarget.value)}>
        <option value="">Choose</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </SelectField>
    );
  const isText = type === "string" && operator !== "contains" && operator !== "starts_with";
  return (
    <>
      <TextField
        {...shared}
        inputMode={isNumeric(type) ? "decimal" : undefined}
        placeholder={hasEnds(operator) || isExact ? undefined : hintOf(type, operator, unit)}
        list={isText ? list : undefined}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      {isText && <datalist id={list}>{values}</datalist>}
    </>
  );
}

/** The values of a column, as suggestions. */
interface ValuesProps extends Pick<FormProps, "slug" | "choice" | "filled"> {
  name: string;
  unit: string | undefined;
}

function Values({ slug, choice, filled, name, unit }: ValuesProps) {
  const sql = valuesSql(choice.source, name, SUGGESTED_MAX);
  const runs = filled ? filled(sql) : sql;
  const { data } = useQuery({
    queryKey: [...keys.tables(slug), "values", runs],
    queryFn: ({ signal }) => ran(slug, runs, signal, SUGGESTED_MAX),
    staleTime: 30_000,
    retry: false,
  });
  return (
    <>
      {(data?.rows as Row[] | undefined)?.map(([one]) => (
        <option key={plain(one)} value={one === null ? EMPTY : shownValue(plain(one), unit)} />
      ))}
    </>
  );
}
