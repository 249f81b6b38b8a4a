/** Colours of values that don't change between loads: by the value, not by its place in the result. */
import { EMPTY } from "../../format/values";

/** Names of grouped values: `Other`, `Other (12)`. */
const GROUPED = /^Other(?: \([\d.,]+\))?$/;

/** FNV-1a. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}

/** Values whose colours a page remembers. */
const KNOWN_MAX = 1_000;

/** The colours of values that charts of this page have shown. */
export const shownColours = new Map<string, number>();

/**
 * A colour's index for each name: the one that it had in another chart or before a filter, if that is free; else the
 * name's own, else the next free one. Doesn't depend on the order of the names.
 */
export function slotsOf(
  names: readonly string[],
  colours: number,
  known: Map<string, number> = new Map(),
): Map<string, number> {
  const slots = new Map<string, number>();
  const taken = new Set<number>();
  const grey = colours - 1;
  const take = (name: string, slot: number) => {
    slots.set(name, slot);
    taken.add(slot);
  };
  for (const name of names.filter((one) => GROUPED.test(one))) take(name, grey);
  if (names.includes(EMPTY) && !taken.has(grey)) take(EMPTY, grey);
  const others = [...new Set(names)].filter((one) => !slots.has(one)).sort();
  for (const name of others) {
    const slot = known.get(name);
    if (slot !== undefined && slot < colours && !taken.has(slot)) take(name, slot);
  }
  for (const name of others.filter((one) => !slots.has(one))) {
    if (taken.size === colours) taken.clear();
    // The last, a grey, is that of grouped values, and taken when no other is left.
    let slot = hash(name) % grey;
    for (let step = 1; step < grey && taken.has(slot); step += 1) slot = (slot + 1) % grey;
    take(name, taken.has(slot) ? grey : slot);
  }
  for (const [name, slot] of slots) if (known.size < KNOWN_MAX && !known.has(name)) known.set(name, slot);
  return slots;
}
