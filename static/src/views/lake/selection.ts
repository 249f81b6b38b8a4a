/** Selection and cursor of a list. */

export interface Selection {
  chosen: ReadonlySet<string>;
  /** Key under the cursor. */
  cursor: string | undefined;
  /** Start of a range. */
  anchor: string | undefined;
}

export const EMPTY_SELECTION: Selection = { chosen: new Set(), cursor: undefined, anchor: undefined };

/** Selects a single row. */
export const only = (key: string): Selection => ({ chosen: new Set([key]), cursor: key, anchor: key });

/** Adds or removes a row. */
export function withToggled({ chosen }: Selection, key: string): Selection {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return { chosen: next, cursor: key, anchor: key };
}

/** Selects from the anchor to a row. */
export function withRange(choice: Selection, key: string, order: readonly string[]): Selection {
  const from = order.indexOf(choice.anchor ?? order[0] ?? key);
  const to = order.indexOf(key);
  if (from < 0 || to < 0) return only(key);
  const chosen = new Set(order.slice(Math.min(from, to), Math.max(from, to) + 1));
  return { chosen, cursor: key, anchor: choice.anchor ?? order[0] };
}

/** Moves the cursor, optionally extending the range. */
export function withStep(choice: Selection, by: number, order: readonly string[], extend: boolean): Selection {
  if (order.length === 0) return EMPTY_SELECTION;
  const at = choice.cursor === undefined ? -1 : order.indexOf(choice.cursor);
  const to = at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + by));
  const key = order[to] ?? "";
  return extend ? withRange(choice, key, order) : only(key);
}

/** Drops rows that no longer exist. */
export function kept(choice: Selection, order: readonly string[]): Selection {
  const there = new Set(order);
  const chosen = new Set([...choice.chosen].filter((key) => there.has(key)));
  if (chosen.size === choice.chosen.size) return choice;
  const cursor = choice.cursor !== undefined && there.has(choice.cursor) ? choice.cursor : undefined;
  return { chosen, cursor, anchor: cursor };
}
