/**
 * Maps offsets and JSON Pointers to nodes of JSON and YAML texts.
 *
 * Uses lezer trees, which also exist for incomplete texts.
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { parser as jsonParser } from "@lezer/json";
import { parser as yamlParser } from "@lezer/yaml";

export type DocumentLanguage = "json" | "yaml";
export type Path = (string | number)[];
interface Range {
  from: number;
  to: number;
}
interface Entry {
  key: string;
  keyNode: SyntaxNode;
  value: SyntaxNode | undefined;
}

const MAPPINGS = new Set(["Object", "BlockMapping", "FlowMapping"]);
const SEQUENCES = new Set(["Array", "BlockSequence", "FlowSequence"]);
const SCALARS = new Set([
  ...["String", "Number", "True", "False", "Null"],
  ...["Literal", "QuotedLiteral", "BlockLiteral", "Alias"],
]);
/** Nodes that wrap a value. */
const WRAPPERS = new Set(["JsonText", "Stream", "Document", "Item", "Anchored", "Tagged"]);

export const isMapping = (node: SyntaxNode): boolean => MAPPINGS.has(node.name);
export const isSequence = (node: SyntaxNode): boolean => SEQUENCES.has(node.name);
const isValue = (node: SyntaxNode): boolean =>
  MAPPINGS.has(node.name) || SEQUENCES.has(node.name) || SCALARS.has(node.name) || WRAPPERS.has(node.name);

let last: { text: string; language: DocumentLanguage; tree: Tree } | undefined;

/** Parses a text; caches the last tree. */
export function parse(text: string, language: DocumentLanguage): Tree {
  if (last?.text !== text || last.language !== language) {
    const parser = language === "json" ? jsonParser : yamlParser;
    last = { text, language, tree: parser.parse(text) };
  }
  return last.tree;
}

function* children(node: SyntaxNode): Generator<SyntaxNode> {
  for (let child = node.firstChild; child; child = child.nextSibling) yield child;
}

/** Unwraps documents, items, anchors and tags. */
function unwrapped(node: SyntaxNode | null | undefined): SyntaxNode | undefined {
  let found = node ?? undefined;
  while (found && WRAPPERS.has(found.name)) {
    const inner: SyntaxNode[] = [...children(found)].filter(isValue);
    found = inner[0];
  }
  return found && isValue(found) ? found : undefined;
}

export const rootOf = (tree: Tree): SyntaxNode | undefined => unwrapped(tree.topNode);

/** Content of a scalar without quotes. */
function scalarText(node: SyntaxNode, text: string): string {
  const raw = text.slice(node.from, node.to).trim();
  if (raw.startsWith('"')) {
    try {
      const parsed: unknown = JSON.parse(raw);
      if (typeof parsed === "string") return parsed;
    } catch {
      // Unfinished input: uses what has been typed.
    }
  }
  const quote = raw[0];
  if (quote !== '"' && quote !== "'") return raw;
  const end = raw.length > 1 && raw.endsWith(quote) ? -1 : undefined;
  return raw.slice(1, end);
}

/** JSON value of a scalar; undefined for other nodes. */
export function scalarValue(node: SyntaxNode | undefined, text: string): string | number | boolean | null | undefined {
  if (!node || !SCALARS.has(node.name)) return undefined;
  const plain = scalarText(node, text);
  if (["String", "QuotedLiteral", "BlockLiteral"].includes(node.name)) return plain;
  if (plain === "true" || plain === "false") return plain === "true";
  if (plain === "null" || plain === "~" || plain === "") return null;
  return /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(plain) ? Number(plain) : plain;
}

function keyOf(pair: SyntaxNode): SyntaxNode | undefined {
  if (pair.name === "Property") return pair.getChild("PropertyName") ?? undefined;
  return pair.getChild("Key")?.firstChild ?? undefined;
}

function valueOf(pair: SyntaxNode): SyntaxNode | undefined {
  const found = [...children(pair)].filter((child) => child.name !== "Key" && isValue(child));
  return unwrapped(found.at(-1));
}

export function entriesOf(node: SyntaxNode, text: string): Entry[] {
  const entries: Entry[] = [];
  for (const child of children(node)) {
    if (child.name !== "Property" && child.name !== "Pair") continue;
    const keyNode = keyOf(child);
    if (keyNode) entries.push({ key: scalarText(keyNode, text), keyNode, value: valueOf(child) });
  }
  return entries;
}

const isItem = (sequence: SyntaxNode, child: SyntaxNode): boolean =>
  sequence.name === "Array" ? isValue(child) : child.name === "Item";

export function itemsOf(node: SyntaxNode): SyntaxNode[] {
  return [...children(node)].filter((child) => isItem(node, child));
}

/** Path of a node, or of the key or value around it. */
export function pathOf(node: SyntaxNode, text: string): Path {
  const path: Path = [];
  for (let at: SyntaxNode | null = node; at?.parent; at = at.parent) {
    const parent: SyntaxNode = at.parent;
    if (at.name === "Property" || at.name === "Pair") {
      const key = keyOf(at);
      path.unshift(key ? scalarText(key, text) : "");
    } else if (isSequence(parent) && isItem(parent, at)) {
      const index = itemsOf(parent).findIndex((item) => item.from === at?.from);
      path.unshift(Math.max(0, index));
    }
  }
  return path;
}

/** Path at an offset. */
export function pathAt(text: string, offset: number, language: DocumentLanguage = "json"): Path {
  return pathOf(parse(text, language).resolveInner(offset, -1), text);
}

/** Node at a path, if any. */
export function nodeAt(root: SyntaxNode | undefined, path: Path, text: string): SyntaxNode | undefined {
  let node = root;
  for (const step of path) {
    if (!node) return undefined;
    if (isMapping(node)) node = entriesOf(node, text).findLast((entry) => entry.key === String(step))?.value;
    else if (isSequence(node)) node = unwrapped(itemsOf(node)[Number(step)]);
    else return undefined;
  }
  return node;
}

const pointerPath = (pointer: string): string[] =>
  pointer
    .replace(/^#/, "")
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

/** Range of a node, limited to its first line. */
function shown(node: SyntaxNode, text: string): Range {
  const end = text.indexOf("\n", node.from);
  return { from: node.from, to: end < 0 ? node.to : Math.min(node.to, end) };
}

/**
 * Range of a JSON Pointer: a scalar itself, the key of a larger value, the start of an item. Falls back to the
 * nearest existing parent.
 */
export function pointerRange(text: string, pointer: string, language: DocumentLanguage): Range {
  let node = rootOf(parse(text, language));
  let range: Range = node ? { from: node.from, to: Math.min(node.from + 1, node.to) } : { from: 0, to: 0 };
  for (const step of pointerPath(pointer)) {
    if (node && isMapping(node)) {
      const entry: Entry | undefined = entriesOf(node, text).findLast(({ key }) => key === step);
      if (!entry) return range;
      const { keyNode, value } = entry;
      range = value && SCALARS.has(value.name) && value.to > value.from ? shown(value, text) : shown(keyNode, text);
      node = value;
    } else if (node && isSequence(node)) {
      const item: SyntaxNode | undefined = unwrapped(itemsOf(node)[Number(step)]);
      if (!item) return range;
      range = shown(item, text);
      node = item;
    } else return range;
  }
  return range;
}
