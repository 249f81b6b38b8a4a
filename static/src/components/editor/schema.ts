/** Looks up JSON Schema at a position of a document. Invalid schemas give fewer results, never errors. */
import { entriesOf, isMapping, nodeAt, scalarValue, type Path } from "./tree";
import type { SyntaxNode } from "@lezer/common";

export type Schema = Record<string, unknown>;

/** Maximum depth of nested references. */
const DEPTH_MAX = 24;

export const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const schemasOf = (value: unknown): Schema[] => (Array.isArray(value) ? value.filter(isSchema) : []);

function resolved(root: Schema, schema: Schema, depth: number): Schema[] {
  const ref = schema.$ref;
  if (typeof ref !== "string" || !ref.startsWith("#") || depth > DEPTH_MAX) return [schema];
  let target: unknown = root;
  for (const step of ref.slice(1).split("/").slice(1)) {
    const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    target = Array.isArray(target) ? (target as unknown[])[Number(key)] : isSchema(target) ? target[key] : undefined;
  }
  return isSchema(target) ? [schema, ...resolved(root, target, depth + 1)] : [schema];
}

/** Known scalar members of a value, which select between alternatives. */
type Known = ReadonlyMap<string, unknown> | undefined;

export const typesOf = (schema: Schema): string[] =>
  typeof schema.type === "string" ? [schema.type] : Array.isArray(schema.type) ? schema.type.map(String) : [];

function fits(root: Schema, alternative: Schema, known: Known): boolean {
  return resolved(root, alternative, 0).every((schema) => {
    const types = typesOf(schema);
    if (known && types.length > 0 && !types.includes("object")) return false;
    if (!known || !isSchema(schema.properties)) return true;
    return Object.entries(schema.properties).every(([name, property]) => {
      if (!isSchema(property) || !known.has(name)) return true;
      if ("const" in property) return property.const === known.get(name);
      return !Array.isArray(property.enum) || property.enum.includes(known.get(name));
    });
  });
}

/** Resolves references, combinations and matching alternatives of a schema. */
function expanded(root: Schema, schema: Schema, known: Known, depth = 0): Schema[] {
  if (depth > DEPTH_MAX) return [];
  return resolved(root, schema, 0).flatMap((one) => {
    const alternatives = [...schemasOf(one.oneOf), ...schemasOf(one.anyOf)];
    const fitting = alternatives.filter((alternative) => fits(root, alternative, known));
    const parts = [...schemasOf(one.allOf), ...(fitting.length > 0 ? fitting : alternatives)];
    return [one, ...parts.flatMap((part) => expanded(root, part, known, depth + 1))];
  });
}

function stepped(schema: Schema, step: string | number): Schema[] {
  const found: unknown[] = [];
  if (typeof step === "number") {
    const prefix = schemasOf(schema.prefixItems)[step];
    found.push(prefix ?? schema.items);
  } else if (isSchema(schema.properties) && Object.hasOwn(schema.properties, step)) {
    found.push(schema.properties[step]);
  } else {
    const patterns = Object.entries(isSchema(schema.patternProperties) ? schema.patternProperties : {});
    const matching = patterns.filter(([pattern]) => matches(pattern, step)).map(([, one]) => one);
    found.push(...(matching.length > 0 ? matching : [schema.additionalProperties]));
  }
  return found.filter(isSchema);
}

function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern, "u").test(name);
  } catch {
    return false;
  }
}

function knownOf(node: SyntaxNode | undefined, text: string, asked?: string | number): Known {
  if (!node || !isMapping(node)) return undefined;
  const scalars = new Map<string, unknown>();
  for (const { key, value } of entriesOf(node, text)) {
    const scalar = scalarValue(value, text);
    if (scalar !== undefined && key !== asked) scalars.set(key, scalar);
  }
  return scalars;
}

/** Schemas of the value at `path`, without alternatives that the document excludes. */
export function schemasAt(root: unknown, path: Path, document: SyntaxNode | undefined, text: string): Schema[] {
  if (!isSchema(root)) return [];
  // The requested value itself may change, so it excludes nothing.
  const known = (length: number) =>
    knownOf(nodeAt(document, path.slice(0, length), text), text, length === path.length - 1 ? path.at(-1) : undefined);
  let schemas = expanded(root, root, known(0));
  path.forEach((step, at) => {
    const next = schemas.flatMap((schema) => stepped(schema, step));
    const ofNext = known(at + 1);
    schemas = next.flatMap((schema) => expanded(root, schema, ofNext));
  });
  return [...new Set(schemas)];
}

/** Alternatives and references of a schema, for an unknown value. */
export const flattened = (root: unknown, schema: unknown): Schema[] =>
  isSchema(root) && isSchema(schema) ? [...new Set(expanded(root, schema, undefined))] : [];

export const requiredOf = (schema: Schema): string[] =>
  Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];

export const propertiesOf = (schema: Schema): [string, Schema][] =>
  isSchema(schema.properties)
    ? Object.entries(schema.properties).filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    : [];

/** Enumerated values of a schema: const, enum, booleans, null. */
export function namedValues(schema: Schema): unknown[] {
  if ("const" in schema) return [schema.const];
  if (Array.isArray(schema.enum)) return schema.enum;
  const types = typesOf(schema);
  return [...(types.includes("boolean") ? [true, false] : []), ...(types.includes("null") ? [null] : [])];
}

/** Short type summary: `string`, `"a" | "b"`, `integer[]`. */
export function summaryOf(root: unknown, schema: Schema, depth = 0): string {
  const schemas = flattened(root, schema);
  const named = schemas.flatMap((one) =>
    "const" in one ? [one.const] : Array.isArray(one.enum) ? (one.enum as unknown[]) : [],
  );
  const types = schemas.flatMap(typesOf).filter((type) => named.length === 0 || type === "null" || type === "object");
  const typeTexts = types.map((type) => {
    if (type !== "array" || depth > 1) return type;
    const items = schemas.find((one) => isSchema(one.items))?.items;
    return isSchema(items) ? `${summaryOf(root, items, depth + 1)}[]` : "array";
  });
  const whole = [...new Set([...named.map((value) => JSON.stringify(value)), ...typeTexts])].join(" | ");
  return whole.length > 60 ? `${whole.slice(0, 59)}…` : whole || "any";
}

export const descriptionOf = (schemas: Schema[]): string | undefined =>
  schemas.map((schema) => schema.description).find((text) => typeof text === "string");

const LIMITS: [name: string, label: string, unit?: string][] = [
  ["minimum", "at least"],
  ["maximum", "at most"],
  ["exclusiveMinimum", "more than"],
  ["exclusiveMaximum", "less than"],
  ["minLength", "at least", "characters"],
  ["maxLength", "at most", "characters"],
  ["minItems", "at least", "items"],
  ["maxItems", "at most", "items"],
  ["pattern", "matches"],
];

/** Default, limits and examples, one line each. */
export function factsOf(schemas: Schema[]): string[] {
  const facts: string[] = [];
  const shown = (value: unknown) => {
    const text = JSON.stringify(value);
    return text.length > 120 ? `${text.slice(0, 119)}…` : text;
  };
  const first = (name: string) => schemas.find((schema) => name in schema)?.[name];
  const limits = LIMITS.filter(([name]) => !(name.startsWith("min") && first(name) === 0) && first(name) !== undefined);
  if (first("default") !== undefined) facts.push(`Default: ${shown(first("default"))}`);
  if (limits.length > 0)
    facts.push(
      `Limits: ${limits.map(([name, label, unit = ""]) => `${label} ${shown(first(name)).replaceAll('"', "")} ${unit}`.trim()).join(", ")}`,
    );
  const examples = first("examples");
  if (Array.isArray(examples)) facts.push(`Examples: ${examples.slice(0, 6).map(shown).join(", ")}`);
  return facts;
}
