/**
 * Parameter values in the URL.
 *
 * Invariant: a missing parameter has its default, an empty one is null. Written values are read back with the same
 * type.
 */
import { DAYS, RANGES } from "../../boards/presets";
import type { PanelResult } from "../../api/types";
import { written } from "../../format/values";
import type { Choice, Param, Scalar } from "./document";

export type Chosen = null | Scalar | Scalar[] | { start: string; end: string };
export type Choices = Record<string, Chosen>;

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const NAME = /^[a-z0-9_]+$/;

/** Strings are quoted only if they would be read as another type. */
export function scalarToText(value: Scalar): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return value === "" || typeof scalarFromText(value) !== "string" || value.startsWith('"')
    ? JSON.stringify(value)
    : value;
}

export function scalarFromText(text: string): Scalar {
  if (text === "true" || text === "false") return text === "true";
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) && String(Number(text)) === text) return Number(text);
  if (/^".*"$/s.test(text)) {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "string") return value;
    } catch {
      // It is a text with quotes.
    }
  }
  return text;
}

function read(param: Param, texts: string[]): Chosen | undefined {
  const [text = ""] = texts;
  if (texts.every((one) => one === "")) return null;
  switch (param.type) {
    case "text":
      return text;
    case "number": {
      const number = Number(text);
      return Number.isFinite(number) ? number : undefined;
    }
    case "select":
      return param.multiple ? texts.filter((one) => one !== "").map(scalarFromText) : scalarFromText(text);
    case "date":
      return DAY.test(text) || NAME.test(text) ? text : undefined;
    case "date_range": {
      const [start = "", end = ""] = text.split("..");
      if (DAY.test(start) && DAY.test(end)) return { start, end };
      return NAME.test(text) ? text : undefined;
    }
  }
}

/** Parses parameter values; ignores unknown ones. */
export function choicesOf(params: Param[], search: string): Choices {
  const given = new URLSearchParams(search);
  const choices: Choices = {};
  for (const param of params) {
    if (!given.has(param.name)) continue;
    const value = read(param, given.getAll(param.name));
    if (value !== undefined) choices[param.name] = value;
  }
  return choices;
}

function write(value: Exclude<Chosen, null>): string[] {
  if (Array.isArray(value)) return value.length > 0 ? value.map(scalarToText) : [""];
  if (typeof value === "object") return [`${value.start}..${value.end}`];
  return [scalarToText(value)];
}

/** Builds the query string and keeps other parameters. */
export function searchOf(params: Param[], choices: Choices, search = ""): string {
  const kept = new URLSearchParams(search);
  for (const param of params) {
    kept.delete(param.name);
    const value = choices[param.name];
    if (value === undefined) continue;
    const raw = param.type === "text" && typeof value === "string";
    for (const text of value === null ? [""] : raw ? [value] : write(value)) kept.append(param.name, text);
  }
  return kept.toString();
}

const days = (from: string, to: string): string => {
  const [first, last] = [from, to].map((day) => written(day, "date"));
  return from === to ? (first ?? "") : `${first ?? ""} to ${last ?? ""}`;
};

/** A value as readers know it: with the labels of its options, days as the locale writes them. */
export function chosenText(value: unknown, param?: Param, options: Choice[] = []): string {
  if (value === null || value === undefined || value === "") return "any";
  if (Array.isArray(value))
    return value.length > 0 ? value.map((one: unknown) => chosenText(one, param, options)).join(" or ") : "any";
  if (typeof value === "string" && (param?.type === "date" || param?.type === "date_range"))
    return DAY.test(value) ? written(value, "date") : (RANGES[value] ?? DAYS[value] ?? value);
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    const known = param?.type === "select" ? (param.options ?? options) : [];
    return known.find((one) => one.value === value)?.label ?? String(value);
  }
  const { start = "", end = "", preset } = value as { start?: string; end?: string; preset?: string | null };
  const named = preset ? (RANGES[preset] ?? preset) : undefined;
  if (named === undefined || preset === "all" || !start) return named ?? days(start, end);
  return `${named} (${days(start, end)})`;
}

/** The values that a query offers a filter; undefined if it failed. */
export function optionsOf(result: PanelResult | undefined): Choice[] | undefined {
  if (!result || "error" in result) return undefined;
  return result.rows.flatMap(([value, label]) =>
    value === null || value === undefined
      ? []
      : [{ value: value as Scalar, label: String((label ?? value) as Scalar) }],
  );
}
