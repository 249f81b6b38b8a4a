/**
 * Three-way merge of JSON values by key; a merge by lines would see adjacent keys as a conflict.
 *
 * Objects are merged by key, lists of named items (tables, columns) by name, everything else as a single value.
 */
const CONFLICT = Symbol("both sides changed it");
type Members = Map<string, unknown>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const same = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

/** Field that identifies the items of all three lists, if any. */
function nameOf(lists: unknown[]): string | undefined {
  return ["name", "table", "id"].find((name) =>
    lists.every((list) => {
      if (!Array.isArray(list)) return false;
      const names = list.map((item: unknown) => (isObject(item) ? item[name] : undefined));
      return names.every((one) => typeof one === "string") && new Set(names).size === names.length;
    }),
  );
}

const byName = (list: unknown, name: string): Members =>
  new Map((list as Record<string, unknown>[]).map((item) => [item[name] as string, item]));

function members(base: Members, mine: Members, theirs: Members): Members | typeof CONFLICT {
  const found: Members = new Map();
  for (const key of new Set([...mine.keys(), ...theirs.keys()])) {
    const value = valueOf(base.get(key), mine.get(key), theirs.get(key));
    if (value === CONFLICT) return CONFLICT;
    if (value !== undefined) found.set(key, value);
  }
  return found;
}

/** Undefined: missing. */
function valueOf(base: unknown, mine: unknown, theirs: unknown): unknown {
  if (same(mine, theirs) || same(base, theirs)) return mine;
  if (same(base, mine)) return theirs;
  if (isObject(base) && isObject(mine) && isObject(theirs)) {
    const of = (value: Record<string, unknown>): Members => new Map(Object.entries(value));
    const found = members(of(base), of(mine), of(theirs));
    return found === CONFLICT ? CONFLICT : Object.fromEntries(found);
  }
  const name = nameOf([base, mine, theirs]);
  if (name === undefined) return CONFLICT;
  const found = members(byName(base, name), byName(mine, name), byName(theirs, name));
  return found === CONFLICT ? CONFLICT : [...found.values()];
}

/** Undefined: a conflict, or invalid JSON. */
export function mergedValues(base: string, mine: string, theirs: string): string | undefined {
  try {
    const value = valueOf(JSON.parse(base), JSON.parse(mine), JSON.parse(theirs));
    return value === CONFLICT ? undefined : JSON.stringify(value);
  } catch {
    return undefined;
  }
}
