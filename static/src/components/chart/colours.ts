/** Colours of values that don't change between loads: by the value, not by its place in the result. */

/** Names of grouped values: `Other`, `Other (12)`. */
const GROUPED = /^Other(?: \([\d.,]+\))?$/;

/** FNV-1a. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}

/**
 * A colour's index for each name: the name's own colour if it is free, else the next free one. Doesn't depend on the order
 * of the names.
 */
export function slotsOf(names: readonly string[], colours: number): Map<string, number> {
  const slots = new Map<string, number>();
  const taken = new Set<number>();
  // Grouped values have the last colour, a grey, for themselves.
  for (const name of names.filter((one) => GROUPED.test(one))) {
    slots.set(name, colours - 1);
    taken.add(colours - 1);
  }
  for (const name of [...new Set(names)].filter((one) => !slots.has(one)).sort()) {
    let slot = hash(name) % colours;
    for (let step = 0; step < colours && taken.has(slot); step += 1) slot = (slot + 1) % colours;
    taken.add(slot);
    slots.set(name, slot);
    if (taken.size === colours) taken.clear();
  }
  return slots;
}
