/** Columns whose values are in the paths of the files. */
import { seriesOf, stemOf } from "../uploads/source-names";

export interface PathColumn {
  /** Stable while the name is edited. */
  id: number;
  name: string;
  /** Words between commas, or a pattern with `{}`. */
  value: string;
}

/** A column whose value tells the files apart, if their names do, else their whole name. */
export const newPathColumn = (names: readonly string[]): PathColumn => ({
  id: Date.now(),
  name: "file",
  value: wordsOfNames(names).join(", ") || "{}",
});

/** `from_path` of a config. */
export const fromPathOf = (value: string): string | string[] =>
  value.includes("{}")
    ? value.trim()
    : value
        .split(",")
        .map((word) => word.trim())
        .filter(Boolean);

/** The column as in a config. */
export const pathColumnOf = ({ name, value }: PathColumn): Record<string, unknown> => ({
  name,
  type: "string",
  from_path: fromPathOf(value),
});

/** The longest of the words that a name contains, as the service finds it. */
export function wordIn(name: string, words: readonly string[]): string | undefined {
  const folded = stemOf(name).toLowerCase();
  return words
    .filter((word) => folded.includes(word.toLowerCase()))
    .reduce<string | undefined>((best, word) => (best && best.length >= word.length ? best : word), undefined);
}

/** Words that tell the files apart: each name has exactly one of them. None if there are no such words. */
export function wordsOfNames(names: readonly string[]): string[] {
  const lists = names.map((name) => [...new Set(seriesOf(name).split(" "))].filter((word) => word.length > 1));
  const counts = new Map<string, number>();
  for (const word of lists.flat()) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const most of [names.length - 1, names.length / 2]) {
    const own = lists.map((list) => list.filter((word) => (counts.get(word) ?? 0) <= most));
    const words = [...new Set(own.flat())];
    if (words.length > 1 && own.every((list) => list.length === 1)) return words.sort();
  }
  return [];
}
