/** Adds a mapping to the text of a config and keeps the rest unchanged. */
import { entriesOf, isMapping, isSequence, itemsOf, parse, rootOf } from "../../components/editor/tree";
import { formatted } from "../../format/json";

interface Inserted {
  text: string;
  /** Offset of the mapping. */
  offset: number;
}

function tablesIn(config: unknown): Set<string> {
  const mappings = (config as { mappings?: unknown } | null)?.mappings;
  const listed = Array.isArray(mappings) ? (mappings as { table?: unknown }[]) : [];
  return new Set(listed.map((mapping) => String(mapping?.table)));
}

/** The name, or with a number appended if it is taken. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  let number = 2;
  while (taken.has(`${name}_${number}`)) number += 1;
  return `${name}_${number}`;
}

export const blankConfig = (slug: string, mappings: unknown[] = []): string =>
  formatted(JSON.stringify({ version: 1, title: slug, mappings }));

/** The config with the mapping appended; undefined if the text has no list of mappings. */
export function insertMapping(text: string, mapping: Record<string, unknown>, slug: string): Inserted | undefined {
  let config: unknown;
  try {
    config = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
  const named = { ...mapping, table: freeName(String(mapping.table), tablesIn(config)) };
  const mine = formatted(JSON.stringify(named), 4).trim();
  if (text.trim() === "") {
    const whole = blankConfig(slug, [named]);
    return { text: whole, offset: whole.indexOf('"table"') };
  }
  const root = rootOf(parse(text, "json"));
  if (!root || !isMapping(root)) return undefined;
  const entries = entriesOf(root, text);
  const list = entries.findLast(({ key }) => key === "mappings");
  if (!list) {
    const comma = entries.length > 0 ? "," : "";
    const at = entries.at(-1)?.value?.to ?? root.from + 1;
    const put = `${comma}\n  "mappings": [\n    ${mine}\n  ]`;
    const rest = text.slice(at);
    return {
      text: text.slice(0, at) + put + (rest.startsWith("}") ? `\n${rest}` : rest),
      offset: at + put.indexOf("{"),
    };
  }
  const { value } = list;
  if (!value || !isSequence(value)) return undefined;
  const before = itemsOf(value).at(-1);
  const at = before?.to ?? value.from + 1;
  const put = `${before ? "," : ""}\n    ${mine}`;
  const rest = text.slice(at);
  const end = before ? rest : rest.replace(/^\s*\]/, "\n  ]");
  return { text: text.slice(0, at) + put + end, offset: at + put.indexOf("{") };
}
