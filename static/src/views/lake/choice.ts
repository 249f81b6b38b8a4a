/** Which rows of a list are chosen, and where its cursor stands. */

export interface Choice {
  chosen: ReadonlySet<string>;
  /** The key that arrows move from. */
  cursor: string | undefined;
  /** Where a range begins. */
  anchor: string | undefined;
}

export const NOTHING: Choice = { chosen: new Set(), cursor: undefined, anchor: undefined };

/** The one, and no other. */
export const only = (key: string): Choice => ({ chosen: new Set([key]), cursor: key, anchor: key });

/** One more, or one less. */
export function toggled({ chosen }: Choice, key: string): Choice {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return { chosen: next, cursor: key, anchor: key };
}

/** All from the anchor to this one. */
export function ranged(choice: Choice, key: string, order: readonly string[]): Choice {
  const from = order.indexOf(choice.anchor ?? order[0] ?? key);
  const to = order.indexOf(key);
  if (from < 0 || to < 0) return only(key);
  const chosen = new Set(order.slice(Math.min(from, to), Math.max(from, to) + 1));
  return { chosen, cursor: key, anchor: choice.anchor ?? order[0] };
}

/** The cursor moves by so many rows, and takes the range with it if asked to. */
export function stepped(choice: Choice, by: number, order: readonly string[], extend: boolean): Choice {
  if (order.length === 0) return NOTHING;
  const at = choice.cursor === undefined ? -1 : order.indexOf(choice.cursor);
  const to = at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + by));
  const key = order[to] ?? "";
  return extend ? ranged(choice, key, order) : only(key);
}

/** Without what is no longer there. */
export function kept(choice: Choice, order: readonly string[]): Choice {
  const there = new Set(order);
  const chosen = new Set([...choice.chosen].filter((key) => there.has(key)));
  if (chosen.size === choice.chosen.size) return choice;
  const cursor = choice.cursor !== undefined && there.has(choice.cursor) ? choice.cursor : undefined;
  return { chosen, cursor, anchor: cursor };
}
