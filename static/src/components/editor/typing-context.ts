/** Finds what is being typed at an offset: a key of an object, or a value at a path. */
import type { SyntaxNode, Tree } from "@lezer/common";
import { isMapping, isSequence, itemsOf, parse, pathOf, rootOf, type DocumentLanguage, type Path } from "./tree";

export interface TypingContext {
  /** `both`: the start of a list item, which may be a value or the first key of an object. */
  kind: "key" | "value" | "both";
  /** Path of the value, or of the object that gets a key. */
  path: Path;
  /** The text typed so far, without quotes. */
  from: number;
  /** Root of the document. */
  root: SyntaxNode | undefined;
  /** Text of the document. */
  text: string;
  /** Whether it is already quoted. */
  quoted: boolean;
  /** Only the name is wanted: a key follows, or a colon exists. */
  bare: boolean;
}

/** Inserted in place of the typed text, so that the parser finds its position. */
const PLACEHOLDER = "placeholder_0";
const WORD = /[\w$.-]/;

function wordStart(text: string, offset: number): number {
  let start = offset;
  while (start > 0 && WORD.test(text[start - 1] ?? "")) start -= 1;
  return start;
}

function nonBlankBefore(text: string, offset: number): number {
  let at = offset - 1;
  while (at >= 0 && /\s/.test(text[at] ?? "")) at -= 1;
  return at;
}

function container(tree: Tree, offset: number): SyntaxNode | undefined {
  let node: SyntaxNode | null = tree.resolveInner(offset, 1);
  while (node && !isMapping(node) && !isSequence(node)) node = node.parent;
  return node ?? undefined;
}

/** Start of the string around the offset: after an odd quote of the line. */
function openQuote(line: string): number {
  let open = -1;
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === "\\" && open >= 0) at += 1;
    else if (line[at] === '"') open = open >= 0 ? -1 : at;
  }
  return open;
}

function jsonPlace(text: string, offset: number, tree: Tree = parse(text, "json")): TypingContext | undefined {
  const line = text.lastIndexOf("\n", offset - 1) + 1;
  const quote = openQuote(text.slice(line, offset));
  const quoted = quote >= 0;
  const from = quoted ? line + quote + 1 : wordStart(text, offset);
  const before = nonBlankBefore(text, quoted ? from - 1 : from);
  const root = rootOf(tree);
  const place = { from, root, text, quoted, bare: /^[\w$.-]*"?\s*:/.test(text.slice(offset, offset + 200)) };
  const sign = text[before];
  if (sign === undefined) return quoted ? undefined : { ...place, kind: "value", path: [] };
  if (sign === ":") {
    let node: SyntaxNode | null = tree.resolveInner(before, 1);
    while (node && node.name !== "Property") node = node.parent;
    return node ? { ...place, kind: "value", path: pathOf(node, text) } : undefined;
  }
  const around = container(tree, before);
  if (!around || around.from > before) return undefined;
  // After a closing bracket, the container is the parent.
  const closed = (sign === "}" || sign === "]") && around.to === before + 1 ? around.parent : around;
  const holder = closed && !isMapping(closed) && !isSequence(closed) ? closed.parent : closed;
  if (!holder) return undefined;
  const path = pathOf(holder, text);
  if (isMapping(holder)) return { ...place, kind: "key", path };
  if (sign !== "[" && sign !== ",") return undefined;
  const index = itemsOf(holder).filter((item) => item.from < before).length;
  return { ...place, kind: "value", path: [...path, index] };
}

/** No completion at the start of a comment, a block scalar or a complete key. */
function yamlPlace(text: string, offset: number, tree: Tree = parse(text, "yaml")): TypingContext | undefined {
  for (let node: SyntaxNode | null = tree.resolveInner(offset, -1); node; node = node.parent)
    if (node.name === "Comment" || (node.name === "BlockLiteralContent" && offset > node.from)) return undefined;
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  const head = text.slice(lineStart, offset);
  if (/(^|\s)#/.test(head)) return undefined;
  const from = wordStart(text, offset);
  const quoted = /["']/.test(text[from - 1] ?? "");
  const rest = text.slice(offset).replace(/^[\w$.-]*/, "");
  const before = text.slice(lineStart, quoted ? from - 1 : from).trimEnd();
  const sign = before.at(-1);
  const bare = /^["']?[ \t]*:(\s|$)/.test(rest);
  const begins = before === "" || (/^[\s-]*$/.test(before) && sign === "-");
  if (!begins && !(sign !== undefined && ":,[{".includes(sign))) return undefined;
  if (sign === ":" && !/\s/.test(text[(quoted ? from - 1 : from) - 1] ?? "")) return undefined;
  const put = begins && !bare && !quoted ? `${PLACEHOLDER}:` : PLACEHOLDER;
  const assumed = text.slice(0, from) + put + (put.endsWith(":") && /^\S/.test(rest) ? " " : "") + rest;
  const there = parse(assumed, "yaml");
  const node = there.resolveInner(from + 1, 1);
  const path = pathOf(node, assumed);
  const isKey = node.parent?.name === "Key" || node.name === "Key";
  if (!isKey && path.at(-1) === PLACEHOLDER) return undefined;
  const place = { from, root: rootOf(there), text: assumed, quoted, bare };
  if (!isKey) return { ...place, kind: "value", path };
  const object = path.slice(0, -1);
  return { ...place, kind: sign === "-" ? "both" : "key", path: object };
}

export function placeAt(
  text: string,
  offset: number,
  language: DocumentLanguage,
  tree?: Tree,
): TypingContext | undefined {
  return language === "json" ? jsonPlace(text, offset, tree) : yamlPlace(text, offset, tree);
}

export const isPlaceholder = (key: string): boolean => key === PLACEHOLDER;
