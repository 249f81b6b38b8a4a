/** A proposed repair of a query that no longer fits the tables. */

/** Steps from one text to another: letters put in, left out or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next.push(
        Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    row = next;
  }
  return row[b.length] ?? 0;
}

/** "Replace `amount` by `total`": the candidate of the message that is closest; undefined if it names none. */
export function repairOf(message: string): string | undefined {
  const missing = /(?:column|table with name|table|field)\s+[`"]?([\p{L}\p{N}_]+)[`"]?/iu.exec(message)?.[1];
  const listed = /(?:candidate bindings?|did you mean)[^"`]*((?:["`][^"`]+["`][,\s]*(?:and|or)?\s*)+)/i.exec(
    message,
  )?.[1];
  if (missing === undefined || listed === undefined) return undefined;
  const candidates = [...listed.matchAll(/["`]([^"`]+)["`]/g)].map(([, name = ""]) => name.split(".").at(-1) ?? name);
  const [best] = candidates
    .filter((name) => name !== missing)
    .sort((a, b) => distance(missing, a) - distance(missing, b));
  return best === undefined ? undefined : `Replace \`${missing}\` by \`${best}\`.`;
}
