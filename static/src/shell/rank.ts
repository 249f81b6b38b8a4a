/** Fuzzy search. */

const WORD_START = /[\s_\-./·]/;

/** Scores a word; undefined: no match. Order: exact, prefix, start of an inner word, substring, subsequence. */
export function score(word: string, text: string): number | undefined {
  const [query, target] = [word.toLowerCase(), text.toLowerCase()];
  if (query === "") return 0;
  if (target === query) return 100;
  if (target.startsWith(query)) return 80 - Math.min(10, target.length - query.length);
  let within: number | undefined;
  for (let at = target.indexOf(query); at >= 0; at = target.indexOf(query, at + 1)) {
    if (WORD_START.test(target[at - 1] ?? "")) return 60 - Math.min(10, at);
    within ??= at;
  }
  if (within !== undefined) return 40 - Math.min(10, within);
  return subsequenceScore(query, target);
}

/** Score of a subsequence; fewer and shorter gaps are better. */
function subsequenceScore(query: string, target: string): number | undefined {
  if (query.length < 2) return undefined;
  let [at, gaps] = [-1, 0];
  for (const letter of query) {
    const next = target.indexOf(letter, at + 1);
    if (next < 0) return undefined;
    if (at >= 0 && !WORD_START.test(target[next - 1] ?? "")) gaps += next - at - 1;
    at = next;
  }
  // Too scattered to be intended.
  return gaps > query.length * 2 ? undefined : 20 - Math.min(15, gaps);
}

export interface Searchable {
  id: string;
  label: string;
  /** Secondary search text: pipeline, kind. */
  also: string;
}

/** Items that match every word of `text`, best first; recently used ones (`recent`, newest first) win ties. */
export function ranked<T extends Searchable>(
  items: readonly T[],
  text: string,
  recent: readonly string[],
  max: number,
): T[] {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const found: { item: T; points: number }[] = [];
  for (const item of items) {
    const points = pointsOf(item, words);
    if (points === undefined) continue;
    const place = recent.indexOf(item.id);
    found.push({ item, points: points + (place < 0 ? 0 : 8 - Math.min(7, place)) });
  }
  // The sort is stable.
  return found
    .sort((a, b) => b.points - a.points)
    .slice(0, max)
    .map(({ item }) => item);
}

function pointsOf({ label, also }: Searchable, words: string[]): number | undefined {
  let sum = 0;
  for (const word of words) {
    const own = score(word, label);
    const other = score(word, also);
    // A match in the name counts more than one in the location.
    const best = Math.max(own ?? -1, other === undefined ? -1 : other / 2);
    if (best < 0) return undefined;
    sum += best;
  }
  return words.length > 0 ? sum / words.length : 0;
}
