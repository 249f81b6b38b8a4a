/** Suggests missing keys and enumerated values from a JSON Schema. */
import type { Tree } from "@lezer/common";
import { isPlaceholder, placeAt, type TypingContext } from "./typing-context";
import {
  descriptionOf,
  factsOf,
  flattened,
  namedValues,
  propertiesOf,
  requiredOf,
  schemasAt,
  summaryOf,
  typesOf,
  type Schema,
} from "./schema";
import { entriesOf, isMapping, nodeAt, type DocumentLanguage, type Path } from "./tree";

export interface Suggestion {
  label: string;
  kind: "key" | "required" | "value" | "item";
  /** Short type summary. */
  detail?: string;
  info?: string;
  /** CodeMirror snippet with `${}` placeholders. */
  insert: string;
}

interface Suggested {
  /** Start of the typed text; quotes around it are replaced. */
  from: number;
  quoted: boolean;
  options: Suggestion[];
}

/** Values that a schema can't know, such as names of queries. */
export type Offers = (path: Path) => string[];

const plain = (text: string): string => text.replaceAll(/[#$](?=\{)/g, (sign) => `\\${sign}`);

/** A value in the syntax of the language; plain scalars in YAML where unambiguous. */
function written(value: unknown, language: DocumentLanguage): string {
  if (language === "yaml" && typeof value === "string" && /^[A-Za-z_][\w ./%()-]*$/.test(value)) {
    if (!/^(true|false|null|yes|no|on|off|y|n)$/i.test(value) && !value.endsWith(" ")) return value;
  }
  return JSON.stringify(value);
}

interface Writing {
  root: unknown;
  language: DocumentLanguage;
}

function members(schema: Schema, writing: Writing, pad: string): string[] {
  const properties = new Map(propertiesOf(schema));
  return requiredOf(schema).map((name) => {
    const value = properties.get(name);
    const filled = value ? template(value, writing, `${pad}  `, true) : " ${}";
    return writing.language === "json" ? `${JSON.stringify(name)}:${filled}` : `${name}:${filled}`;
  });
}

function objectTemplate(schema: Schema | undefined, writing: Writing, pad: string, shallow: boolean): string {
  const inner = schema && !shallow ? members(schema, writing, pad) : [];
  if (writing.language === "json") return inner.length > 0 ? ` { ${inner.join(", ")} }` : " { ${} }";
  return inner.length > 0 ? inner.map((member) => `\n${pad}${member}`).join("") : `\n${pad}\${}`;
}

function listTemplate(items: Schema | undefined, writing: Writing, pad: string, shallow: boolean): string {
  const object = items && flattened(writing.root, items).find((one) => requiredOf(one).length > 0);
  const isText = items && flattened(writing.root, items).some((one) => typesOf(one).includes("string"));
  if (writing.language === "json") {
    if (object && !shallow) return ` [${objectTemplate(object, writing, pad, false)} ]`;
    return isText ? ' ["${}"]' : " [${}]";
  }
  const inner = object && !shallow ? members(object, writing, `${pad}  `) : ["${}"];
  return `\n${pad}- ${inner.join(`\n${pad}  `)}`;
}

/** Value template for a new key, with a leading space. `pad`: indentation of further lines. */
function template(schema: Schema, writing: Writing, pad: string, shallow = false): string {
  const schemas = flattened(writing.root, schema);
  const types = schemas.flatMap(typesOf);
  const fixed = schemas.find((one) => "const" in one);
  const several = schemas.filter((one) => "const" in one).length > 1 || schemas.some((one) => Array.isArray(one.enum));
  if (fixed && !several) return ` ${plain(written(fixed.const, writing.language))}`;
  const text = writing.language === "json" ? ' "${}"' : " ${}";
  if (several) return text;
  const main = types.find((type) => type !== "null");
  if (main === "object") {
    const object = schemas.find((one) => typesOf(one).includes("object"));
    return objectTemplate(object, writing, pad, shallow);
  }
  if (main === "array") {
    const items = schemas.map((one) => one.items).find((one) => typeof one === "object") as Schema | undefined;
    return listTemplate(items, writing, pad, shallow);
  }
  if (main === "boolean") return ` \${${String(!(schemas.find((one) => "default" in one)?.default === true))}}`;
  return main === "string" ? text : " ${}";
}

function about(root: unknown, schema: Schema): { detail: string; info?: string } {
  const schemas = flattened(root, schema);
  const lines = [descriptionOf([schema, ...schemas]), ...factsOf(schemas)].filter((line) => line !== undefined);
  return { detail: summaryOf(root, schema), ...(lines.length > 0 ? { info: lines.join("\n") } : {}) };
}

function keySuggestions(schemas: Schema[], place: TypingContext, writing: Writing): Suggestion[] {
  const node = nodeAt(place.root, place.path, place.text);
  const typed = place.text.slice(place.from).match(/^[\w$.-]*/)?.[0] ?? "";
  const entries = node && isMapping(node) ? entriesOf(node, place.text) : [];
  const isThis = (from: number) => Math.abs(from - place.from) <= 1;
  const present = new Set(
    entries.filter(({ key, keyNode }) => !isPlaceholder(key) && !isThis(keyNode.from)).map(({ key }) => key),
  );
  const found = new Map<string, Suggestion>();
  // Further lines are indented deeper than the key.
  const column = place.from - (place.text.lastIndexOf("\n", place.from - 1) + 1);
  const lineHead = place.text.slice(place.from - column, place.from);
  const pad = " ".repeat(column - (/^\s*/.exec(lineHead)?.[0].length ?? 0) + 2);
  for (const schema of schemas) {
    const required = requiredOf(schema);
    for (const [name, property] of propertiesOf(schema)) {
      if (present.has(name) || found.has(name)) continue;
      const key = writing.language === "json" ? JSON.stringify(name) : name;
      const rest = place.bare ? "" : `:${template(property, writing, pad)}`;
      const kind = required.includes(name) ? "required" : "key";
      found.set(name, { label: name, kind, ...about(writing.root, property), insert: plain(key) + rest });
    }
  }
  return typed && present.has(typed) ? [] : [...found.values()];
}

function itemSuggestions(schemas: Schema[], writing: Writing, pad: string): Suggestion[] {
  return schemas
    .filter((schema) => requiredOf(schema).length > 0)
    .map((schema) => {
      const fixed = propertiesOf(schema).filter(([, property]) => "const" in property);
      const named = fixed.map(([name, property]) => `${name}: ${String(property.const)}`).join(", ");
      const label = named || requiredOf(schema).join(", ");
      const inner = members(schema, writing, pad);
      const insert = writing.language === "json" ? `{ ${inner.join(", ")} }` : inner.join(`\n${pad}`);
      const info = descriptionOf([schema]);
      return { label, kind: "item" as const, detail: "new", insert, ...(info ? { info } : {}) };
    });
}

function valueSuggestions(
  schemas: Schema[],
  place: TypingContext,
  writing: Writing,
  offers: Offers | undefined,
): Suggestion[] {
  const found = new Map<string, Suggestion>();
  const add = (value: unknown, detail: string | undefined, info: string | undefined) => {
    const text = written(value, writing.language);
    const label = typeof value === "string" ? value : text;
    if (label === "" || found.has(label) || (place.quoted && typeof value !== "string")) return;
    const more = { ...(detail ? { detail } : {}), ...(info ? { info } : {}) };
    found.set(label, { label, kind: "value", ...more, insert: plain(text) });
  };
  for (const name of offers?.(place.path) ?? []) add(name, undefined, undefined);
  const isDefault = (value: unknown) => schemas.some((schema) => "default" in schema && schema.default === value);
  for (const schema of schemas)
    for (const value of namedValues(schema))
      add(value, isDefault(value) ? "default" : undefined, descriptionOf([schema]));
  for (const schema of schemas) {
    const examples: unknown[] = Array.isArray(schema.examples) ? schema.examples : [];
    for (const example of [...examples, ...("default" in schema ? [schema.default] : [])])
      if (typeof example !== "object") add(example, isDefault(example) ? "default" : "example", undefined);
  }
  return [...found.values()];
}

export function suggest(
  text: string,
  offset: number,
  language: DocumentLanguage,
  schema: unknown,
  more: { tree?: Tree; offers?: Offers | undefined } = {},
): Suggested | undefined {
  const place = placeAt(text, offset, language, more.tree);
  if (!place) return undefined;
  const writing = { root: schema, language };
  const schemas = schemasAt(schema, place.path, place.root, place.text);
  const options: Suggestion[] = [];
  const isItem = typeof place.path.at(-1) === "number" || place.path.length === 0;
  if (place.kind !== "value") options.push(...keySuggestions(schemas, place, writing));
  if (place.kind !== "key") options.push(...valueSuggestions(schemas, place, writing, more.offers));
  if (place.kind !== "key" && !place.quoted && isItem) options.push(...itemSuggestions(schemas, writing, "  "));
  return { from: place.from, quoted: place.quoted, options };
}
