/**
 * Edits a dashboard's YAML.
 *
 * Invariants: comments survive; lines that an edit doesn't touch stay as they were written.
 */
import { diff3Merge } from "node-diff3";
import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  Scalar,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { choiceOf } from "./builder/checked";
import { type ChartChoice, freeTitle, type ParamUse } from "./builder/choice";
import { statementOf } from "./builder/statement";

/** Maximum number of YAML aliases; the service refuses more. */
const ALIASES_MAX = 1_000;
/** Choices of the chart builder, by query; the service ignores names that start with `x-`. */
export const CHOICES = "x-charts";

/** Parses like the service: YAML 1.2 core schema, merge keys, the last of two equal keys. */
export const parsed = (text: string): Document.Parsed =>
  parseDocument(text, { version: "1.2", schema: "core", merge: true, uniqueKeys: false });

export const valueOf = (document: Document): unknown => document.toJS({ maxAliasCount: ALIASES_MAX });

/** An edit that the document doesn't allow; the message is shown to the user. */
export class EditError extends Error {}

const WRITTEN = { lineWidth: 0, flowCollectionPadding: true } as const;

/**
 * Applies an edit and returns the text.
 *
 * The parser's output reformats the whole text. So that only edited lines change, the difference between its output
 * before and after is applied to the text as it was written.
 *
 * @throws EditError if the text isn't valid YAML
 */
export function edited(text: string, edit: (document: Document) => void): string {
  const document = parsed(text);
  const [error] = document.errors;
  if (error) throw new EditError(`line ${error.linePos?.[0].line ?? 1} isn't valid YAML`);
  if (!isMap(document.contents)) throw new EditError("the YAML isn't a dashboard");
  const before = document.toString(WRITTEN);
  edit(document);
  const after = document.toString(WRITTEN);
  const lines = (one: string) => one.split("\n");
  const merged = diff3Merge(lines(after), lines(before), lines(text), { excludeFalseConflicts: true })
    .flatMap((part) => part.ok ?? (part.conflict ? settled(part.conflict) : []))
    .join("\n");
  return same(merged, after) ? merged : after;
}

/** Settles lines next to an edit: those that the edit left alone stay as they were written. */
function settled({ a, o, b }: { a: string[]; o: string[]; b: string[] }): string[] {
  if (o.length !== b.length) return a;
  const most = Math.min(a.length, o.length);
  let start = 0;
  while (start < most && a[start] === o[start]) start += 1;
  let end = 0;
  while (end < most - start && a.at(-1 - end) === o.at(-1 - end)) end += 1;
  const middle = a.slice(start, a.length - end);
  if (a.length !== o.length) return [...b.slice(0, start), ...middle, ...b.slice(b.length - end)];
  return a.map((line, at) => (line === o[at] ? (b[at] ?? line) : line));
}

function same(a: string, b: string): boolean {
  const [left, right] = [parsed(a), parsed(b)];
  if (left.errors.length > 0) return false;
  const comments = (document: Document) => [...document.toString(WRITTEN).matchAll(/#.*$/gm)].length;
  return JSON.stringify(valueOf(left)) === JSON.stringify(valueOf(right)) && comments(left) === comments(right);
}

/** The sequence under a top-level name; created if missing. */
function sequence(document: Document, name: string): YAMLSeq {
  const found: unknown = document.get(name);
  if (isSeq(found)) {
    if (found.items.length === 0) found.flow = false;
    return found;
  }
  if (found !== undefined && found !== null) throw new EditError(`\`${name}\` isn't a list`);
  const made = document.createNode([]);
  made.flow = false;
  document.set(name, made);
  return made;
}

function mapping(document: Document, name: string): YAMLMap {
  const found: unknown = document.get(name);
  if (isMap(found)) {
    if (found.items.length === 0) found.flow = false;
    return found;
  }
  if (found !== undefined && found !== null) throw new EditError(`\`${name}\` isn't an object`);
  const made = document.createNode({});
  made.flow = false;
  document.set(name, made);
  return made;
}

const idOf = (node: unknown): unknown => (isMap(node) ? node.get("id") : undefined);

const textOf = (id: unknown): string | undefined => (typeof id === "string" ? id : undefined);

/** Index of a panel. A panel without an ID is called `panel-3`, as in the view. */
function indexOf(panels: YAMLSeq, id: string): number {
  const at = panels.items.findIndex((node, index) => (idOf(node) ?? `panel-${index + 1}`) === id);
  if (at < 0) throw new EditError(`the panel ${id} comes from a YAML alias or merge key; edit it in the YAML`);
  return at;
}

function panelAt(document: Document, id: string): YAMLMap {
  const panels = sequence(document, "panels");
  const node = panels.items[indexOf(panels, id)];
  if (!isMap(node)) throw new EditError(`the panel ${id} comes from a YAML alias or merge key; edit it in the YAML`);
  return node;
}

/** Creates a node from plain data: top-level entries on lines, nested ones in braces. */
function nodeOf(document: Document, value: unknown, flow = false): YAMLMap {
  const node = document.createNode(value) as YAMLMap;
  node.flow = flow;
  for (const { value: inner } of node.items) if (isMap(inner) || isSeq(inner)) inner.flow = true;
  return node;
}

function sqlNode(document: Document, sql: string): YAMLMap {
  const text = new Scalar(`${sql.trim()}\n`);
  text.type = Scalar.BLOCK_LITERAL;
  const node = document.createNode({}) as YAMLMap;
  node.flow = false;
  node.set("sql", text);
  return node;
}

/** A panel's query, and the builder's choice that it was generated from. */
export interface MadeQuery {
  name: string;
  sql: string;
  /** Undefined for a query that people wrote. */
  choice?: ChartChoice | undefined;
}

function setQuery(document: Document, { name, sql, choice }: MadeQuery): void {
  const queries = mapping(document, "queries");
  const known: unknown = queries.get(name);
  if (isMap(known)) {
    const old: unknown = known.get("sql");
    if (typeof old !== "string" || old.trim() !== sql.trim()) {
      known.flow = false;
      known.set("sql", sqlNode(document, sql).get("sql", true));
    }
  } else queries.set(name, sqlNode(document, sql));
  const stored: unknown = document.get(CHOICES);
  if (choice) mapping(document, CHOICES).set(name, nodeOf(document, choice, true));
  else if (isMap(stored)) stored.delete(name);
  dropEmpty(document, CHOICES);
}

function dropEmpty(document: Document, name: string): void {
  const node: unknown = document.get(name);
  if ((isMap(node) || isSeq(node)) && node.items.length === 0) document.delete(name);
}

export const queryNames = (document: Document): string[] => {
  const queries: unknown = document.get("queries");
  return isMap(queries) ? queries.items.map(({ key }) => String(isScalar(key) ? key.value : key)) : [];
};

export const panelIds = (document: Document): string[] => {
  const panels: unknown = document.get("panels");
  return isSeq(panels) ? panels.items.map((node, at) => textOf(idOf(node)) ?? `panel-${at + 1}`) : [];
};

/** Titles of the panels of a parsed document. */
export function panelTitles(value: unknown): string[] {
  const { panels } = (value ?? {}) as { panels?: unknown };
  const list = Array.isArray(panels) ? (panels as ({ title?: unknown } | null)[]) : [];
  return list.flatMap((one) => (typeof one?.title === "string" ? [one.title] : []));
}

/** Appends a panel, or inserts it at an index; its query is added. */
export function addPanel(document: Document, panel: Record<string, unknown>, query?: MadeQuery, at?: number): void {
  if (query) setQuery(document, query);
  const panels = sequence(document, "panels");
  const node = nodeOf(document, panel, panel.type === "kpi");
  if (at === undefined) panels.items.push(node);
  else panels.items.splice(at, 0, node);
}

/** Names that the builder sets; others of a panel stay. */
const BUILT = [
  ...["type", "title", "query", "x", "y", "series", "stacked", "horizontal"],
  ...["value", "rows", "columns", "values", "totals"],
];
/** Names that panels of all types have. */
const SHARED = ["id", "description", "width", "height"];

/** Replaces a panel's content; keeps its position, size and other settings. */
export function replacePanel(document: Document, id: string, panel: Record<string, unknown>, query?: MadeQuery): void {
  if (query) setQuery(document, query);
  const node = panelAt(document, id);
  const made = nodeOf(document, panel);
  const isOther = node.get("type") !== panel.type;
  const before: unknown = node.get("query");
  for (const name of BUILT) {
    const value: unknown = made.get(name, true);
    const old: unknown = node.get(name, true);
    if (value === undefined) node.delete(name);
    else if (JSON.stringify(plainOf(old)) !== JSON.stringify(plainOf(value))) node.set(name, value);
  }
  if (isOther) {
    const names = node.items.map(({ key }) => (isScalar(key) ? key.value : key));
    for (const name of names) if (![...BUILT, ...SHARED].includes(String(name))) node.delete(name);
  }
  if (before !== panel.query) dropUnused(document, [before]);
}

export const retitlePanel = (document: Document, id: string, title: string): void => {
  const node = panelAt(document, id);
  if (node.get("title") !== title) node.set("title", title);
};

export const setPanelText = (document: Document, id: string, text: string): void => {
  const written = new Scalar(`${text.trimEnd()}\n`);
  written.type = Scalar.BLOCK_LITERAL;
  const node = panelAt(document, id);
  node.flow = false;
  node.set("text", written);
};

const plainOf = (node: unknown): unknown =>
  isMap(node) || isSeq(node) ? node.toJSON() : isScalar(node) ? node.value : node;

/** Names of the queries that panels and parameters use. */
function usedQueries(document: Document): Set<unknown> {
  const value = valueOf(document) as { panels?: { query?: unknown }[]; params?: { options?: { query?: unknown } }[] };
  const panels = Array.isArray(value.panels) ? value.panels : [];
  const params = Array.isArray(value.params) ? value.params : [];
  return new Set([...panels.map((one) => one?.query), ...params.map((one) => one?.options?.query)]);
}

/** Deletes those of the named queries that are no longer used. */
function dropUnused(document: Document, names: unknown[]): void {
  const used = usedQueries(document);
  const [queries, stored]: unknown[] = [document.get("queries"), document.get(CHOICES)];
  for (const name of names) {
    if (typeof name !== "string" || used.has(name)) continue;
    if (isMap(queries)) queries.delete(name);
    if (isMap(stored)) stored.delete(name);
  }
  dropEmpty(document, CHOICES);
}

export function removePanel(document: Document, id: string): void {
  const panels = sequence(document, "panels");
  const [gone] = panels.items.splice(indexOf(panels, id), 1);
  if (panels.items.length === 0) panels.flow = true;
  // An anchor may be used by other panels.
  if (isMap(gone)) dropUnused(document, [gone.get("query")]);
}

/** Moves a panel so that it is the `to`th, counted from 0. */
export function movePanel(document: Document, id: string, to: number): void {
  const panels = sequence(document, "panels");
  const from = indexOf(panels, id);
  const [node] = panels.items.splice(from, 1);
  panels.items.splice(Math.max(0, Math.min(to, panels.items.length)), 0, node);
  // An alias can't come before its anchor.
  const seen = new Set<string>();
  visit(document, {
    Node: (_, one) => {
      if (isAlias(one) && !seen.has(one.source))
        throw new EditError(`the panel ${id} is referenced by other panels; move it in the YAML`);
      if ("anchor" in one && typeof one.anchor === "string") seen.add(one.anchor);
    },
  });
}

export function resizePanel(document: Document, id: string, size: { width?: number; height?: number }): void {
  const node = panelAt(document, id);
  for (const [name, value] of Object.entries(size)) if (node.get(name) !== value) node.set(name, value);
}

/** Adds a copy of a panel after it. */
export function copyPanel(document: Document, id: string, copy: string): void {
  const panels = sequence(document, "panels");
  const at = indexOf(panels, id);
  const value = plainOf(panels.items[at]) as Record<string, unknown>;
  const title =
    typeof value.title === "string" ? { title: freeTitle(value.title, panelTitles(valueOf(document))) } : {};
  const node = nodeOf(
    document,
    { ...value, id: copy, ...title },
    isMap(panels.items[at]) && panels.items[at].flow === true,
  );
  panels.items.splice(at + 1, 0, node);
}

/** Adds a parameter, and the query of its options. */
export function addParam(document: Document, param: Record<string, unknown>, query?: MadeQuery): void {
  const params = sequence(document, "params");
  if (query) setQuery(document, query);
  params.items.push(nodeOf(document, param, true));
  // Readers expect parameters before queries.
  if (isMap(document.contents)) {
    const { items } = document.contents;
    const keyAt = (name: string) => items.findIndex(({ key }) => (isScalar(key) ? key.value : key) === name);
    const [from, to] = [keyAt("params"), keyAt("queries")];
    if (to >= 0 && from > to) items.splice(to, 0, ...items.splice(from, 1));
  }
}

export function removeParam(document: Document, name: string): void {
  const params = sequence(document, "params");
  const at = params.items.findIndex((node) => isMap(node) && node.get("name") === name);
  const [gone] = at < 0 ? [] : params.items.splice(at, 1);
  dropEmpty(document, "params");
  if (!isMap(gone)) return;
  const options: unknown = gone.get("options");
  if (isMap(options)) dropUnused(document, [options.get("query")]);
}

/** Sets the SQL of a query and the choice that it was generated from. */
export const replaceQuery = (document: Document, query: MadeQuery): void => setQuery(document, query);

export const setTitle = (document: Document, title: string): void => document.set("title", title);

/** Choices that queries were generated from, by name; skips malformed entries. */
export function choicesOf(value: unknown): Map<string, ChartChoice> {
  const stored = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[CHOICES] : undefined;
  const found = new Map<string, ChartChoice>();
  if (typeof stored !== "object" || stored === null) return found;
  for (const [name, one] of Object.entries(stored as Record<string, unknown>)) {
    const choice = choiceOf(one);
    if (choice) found.set(name, choice);
  }
  return found;
}

/** The choice that a panel's query was generated from; undefined if it was written or edited by hand. */
export function choiceOfQuery(value: unknown, name: string): ChartChoice | undefined {
  const choice = choicesOf(value).get(name);
  return choice && sqlOf(value, name) === statementOf(choice) ? choice : undefined;
}

export function sqlOf(value: unknown, name: string): string | undefined {
  const { queries } = (value ?? {}) as { queries?: Record<string, { sql?: unknown } | null> | null };
  const sql = queries?.[name]?.sql;
  return typeof sql === "string" ? sql.trim() : undefined;
}

/** Queries of a table that the builder created, by name. */
export function builderQueriesOf(value: unknown, table: string): Map<string, ChartChoice> {
  const found = new Map<string, ChartChoice>();
  for (const name of choicesOf(value).keys()) {
    const choice = choiceOfQuery(value, name);
    if (choice && "table" in choice.source && choice.source.table === table) found.set(name, choice);
  }
  return found;
}

/** Uses of parameters that charts of the table share, for a new one. */
export function paramsOf(value: unknown, table: string): ParamUse[] {
  const found = new Map<string, ParamUse>();
  for (const { params = [] } of builderQueriesOf(value, table).values())
    for (const use of params) found.set(use.param, use);
  return [...found.values()];
}

export function withParams(choice: ChartChoice, params: ParamUse[]): ChartChoice {
  const rest = { ...choice };
  delete rest.params;
  return params.length > 0 ? { ...rest, params } : rest;
}

/** Adds or removes a parameter's use in all charts of tables, and regenerates their queries. */
export function changeUses(document: Document, change: (choice: ChartChoice) => ParamUse[] | undefined): number {
  const value = valueOf(document);
  let count = 0;
  for (const name of choicesOf(value).keys()) {
    const choice = choiceOfQuery(value, name);
    const params = choice && change(choice);
    if (!choice || !params) continue;
    const next = withParams(choice, params);
    setQuery(document, { name, sql: statementOf(next), choice: next });
    count += 1;
  }
  return count;
}
