/** Moves the item at `from` by `by` positions. */
export function moved<T>(list: readonly T[], from: number, by: number): T[] {
  const left = [...list];
  const to = from + by;
  if (to < 0 || to >= list.length) return left;
  left.splice(to, 0, ...left.splice(from, 1));
  return left;
}
