/** Completion and hover for JSON and YAML by JSON Schema. */
import { snippet, startCompletion, type Completion, type CompletionSource } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { hoverTooltip, type EditorView } from "@codemirror/view";
import { descriptionOf, factsOf, schemasAt, summaryOf } from "./schema";
import { suggest, type Offers, type Suggestion } from "./suggest";
import { parse, pathOf, rootOf, type DocumentLanguage } from "./tree";

const TYPES = { key: "property", required: "property", value: "enum", item: "class" } as const;
/** Characters after which completion opens automatically. */
const OPENERS = /[:"'[{,\-\s]/;

export interface SchemaSource {
  language: DocumentLanguage;
  schema: () => unknown;
  offers: () => Offers | undefined;
}

function completionOf(suggestion: Suggestion, order: number, quoted: boolean, language: DocumentLanguage): Completion {
  const { label, kind, detail, info, insert } = suggestion;
  return {
    label,
    type: TYPES[kind],
    boost: (kind === "required" ? 60 : 50) - Math.min(order, 40),
    ...(detail ? { detail } : {}),
    ...(info ? { info: () => lines(info) } : {}),
    apply: (view, completion, from, to) => {
      const sign = quoted ? view.state.sliceDoc(from - 1, from) : "";
      const closed = quoted && view.state.sliceDoc(to, to + 1) === sign;
      const start = quoted ? from - 1 : from;
      const end = closed ? to + 1 : to;
      const next = view.state.sliceDoc(end, end + 200);
      const comma = language === "json" && /^\s*["{[]/.test(next) && kind !== "value" && !/^\s*:/.test(next) ? "," : "";
      snippet(insert + comma)(view, completion, start, end);
      if (kind === "key" || kind === "required") setTimeout(() => startCompletion(view));
    },
  };
}

function lines(text: string): HTMLElement {
  const box = document.createElement("div");
  box.className = "completion-info";
  for (const line of text.split("\n")) {
    const row = document.createElement("p");
    // Between backticks: code.
    for (const [at, part] of line.split("`").entries()) {
      const node = at % 2 === 1 ? document.createElement("code") : document.createElement("span");
      node.textContent = part;
      row.append(node);
    }
    box.append(row);
  }
  return box;
}

export function schemaCompletion({ language, schema, offers }: SchemaSource): CompletionSource {
  return ({ state, pos, explicit }) => {
    const before = state.sliceDoc(Math.max(0, pos - 1), pos);
    if (!explicit && before !== "" && !/[\w$]/.test(before) && !OPENERS.test(before)) return null;
    // Whitespace opens completion only after a colon or within quotes.
    if (!explicit && /\s/.test(before) && !/:\s$/.test(state.sliceDoc(Math.max(0, pos - 2), pos))) return null;
    const tree = language === "json" ? { tree: syntaxTree(state) } : {};
    const found = suggest(state.sliceDoc(), pos, language, schema(), { ...tree, offers: offers() });
    if (!found || found.options.length === 0) return null;
    const options = found.options.map((one, order) => completionOf(one, order, found.quoted, language));
    return { from: found.from, options, validFor: /^[\w$.-]*$/ };
  };
}

/** Shows the schema's description of the key or value under the pointer. */
export function schemaHover({ language, schema }: SchemaSource): Extension {
  return hoverTooltip((view: EditorView, pos: number) => {
    const text = view.state.sliceDoc();
    const tree = language === "json" ? syntaxTree(view.state) : parse(text, language);
    const node = tree.resolveInner(pos, 1);
    if (!["PropertyName", "String", "Number", "True", "False", "Null", "Literal", "QuotedLiteral"].includes(node.name))
      return null;
    const path = pathOf(node, text);
    const schemas = schemasAt(schema(), path, rootOf(tree), text);
    const description = descriptionOf(schemas);
    const [first] = schemas;
    if (!first || path.length === 0) return null;
    const create = () => {
      const dom = lines([description, ...factsOf(schemas)].filter((line) => line !== undefined).join("\n"));
      const head = document.createElement("p");
      const name = document.createElement("strong");
      name.textContent = String(path.findLast((step) => typeof step === "string") ?? "");
      head.append(name, ` ${summaryOf(schema(), first)}`);
      dom.prepend(head);
      return { dom };
    };
    return { pos: node.from, end: node.to, above: true, create };
  });
}
