/** Differences of two versions of a dashboard, in words. */
import { isRaw } from "../../boards/builder/checked";
import * as yaml from "../../boards/yaml";

type Raw = Record<string, unknown>;

interface Part {
  title: string;
  /** What it shows, without title and size. */
  content: string;
  /** Its SQL, by which it is another part. */
  sql: string;
  size: string;
}

const raws = (value: unknown): Raw[] => (Array.isArray(value) ? value.map((one) => (isRaw(one) ? one : {})) : []);
const named = (...values: unknown[]): string =>
  values.find((one): one is string => typeof one === "string" && one !== "") ?? "";
const quoted = (title: string): string => `“${title}”`;

/** The parts by ID, in order; with the SQL of their query. */
function partsOf(list: unknown, sqlOf: (part: Raw) => unknown, kind: string): Map<string, Part> {
  const parts = new Map<string, Part>();
  for (const { title, width, height, ...rest } of raws(list)) {
    // Texts need neither an ID nor a title.
    const known = named(rest.id, rest.name, title, rest.text).slice(0, 40) || kind;
    let id = known;
    for (let n = 2; parts.has(id); n += 1) id = `${known} ${n}`;
    const sql = JSON.stringify(sqlOf(rest));
    parts.set(id, {
      title: named(title, id),
      content: JSON.stringify([rest, sql]),
      sql,
      size: JSON.stringify([width, height]),
    });
  }
  return parts;
}

function changesOfParts(before: Map<string, Part>, after: Map<string, Part>, kind: string): string[] {
  const changes: string[] = [];
  // The ID of a removed part may be that of a new one.
  const isSame = (one: Part, other: Part | undefined) =>
    other !== undefined && (one.title === other.title || one.sql === other.sql);
  for (const [id, now] of after)
    if (!isSame(now, before.get(id))) changes.push(`Added the ${kind} ${quoted(now.title)}`);
  for (const [id, old] of before) {
    const now = after.get(id);
    if (!now || !isSame(old, now)) changes.push(`Removed the ${kind} ${quoted(old.title)}`);
    else {
      if (now.title !== old.title) changes.push(`Renamed the ${kind} ${quoted(old.title)} to ${quoted(now.title)}`);
      if (now.content !== old.content) changes.push(`Changed the ${kind} ${quoted(now.title)}`);
      if (now.size !== old.size) changes.push(`Resized the ${kind} ${quoted(now.title)}`);
    }
  }
  const kept = (from: Map<string, Part>, other: Map<string, Part>) => [...from.keys()].filter((id) => other.has(id));
  if (kept(before, after).join() !== kept(after, before).join()) changes.push(`Moved ${kind}s`);
  return changes;
}

/** What changed from one text to the other; empty if nothing did. */
export function changesBetween(before: string, after: string): string[] {
  if (before === after) return [];
  const documents = [before, after].map((text) => yaml.parsed(text));
  if (documents.some(({ errors }) => errors.length > 0)) return ["Changed the YAML, which has an error"];
  const [old, now] = documents.map((document) => yaml.valueOf(document));
  if (!isRaw(old) || !isRaw(now)) return ["Changed the YAML"];
  const changes: string[] = [];
  if (old.title !== now.title) changes.push(`Renamed the dashboard to ${quoted(named(now.title))}`);
  if (old.description !== now.description) changes.push("Changed the description");
  const panels = [old, now].map((one) => partsOf(one.panels, ({ query }) => yaml.sqlOf(one, named(query)), "panel"));
  const options = ({ options: of }: Raw) => (isRaw(of) ? named(of.query) : "");
  const filters = [old, now].map((one) => partsOf(one.params, (part) => yaml.sqlOf(one, options(part)), "filter"));
  for (const [[first, second], kind] of [[panels, "panel"] as const, [filters, "filter"] as const])
    if (first && second) changes.push(...changesOfParts(first, second, kind));
  return changes.length > 0 ? changes : ["Changed other parts of the YAML"];
}
