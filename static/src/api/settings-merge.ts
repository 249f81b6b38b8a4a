/** Merges concurrent changes of the settings. */
import type { Settings } from "./types";

type Field = keyof Settings;

const FIELDS: readonly Field[] = ["workspace_name", "display_name", "starred"];

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The merged settings, and the fields that both sides changed, which keep the value of `mine`. */
export function merged(base: Settings, mine: Settings, theirs: Settings): { settings: Settings; conflicts: Field[] } {
  const settings = { ...theirs };
  const conflicts: Field[] = [];
  const take = <F extends Field>(field: F) => {
    if (same(mine[field], base[field])) return;
    if (!same(theirs[field], base[field]) && !same(theirs[field], mine[field])) conflicts.push(field);
    settings[field] = mine[field];
  };
  FIELDS.forEach(take);
  return { settings, conflicts };
}
