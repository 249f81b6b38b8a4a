/** Slugs identify pipelines and dashboards in URLs and in the store. */
import { SLUG_CHARACTER, SLUG_CHARACTERS_MAX, SLUG_START } from "../api/rules";

export const SLUG_HINT = "a-z, 0-9, _ and -, starting with a letter or digit";

/** Validates a slug, or a name that follows its rule, like the service; undefined if valid. */
export function slugFault(slug: string, noun = "URL name"): string | undefined {
  if (slug === "") return `Enter a ${noun}.`;
  if (slug.length > SLUG_CHARACTERS_MAX)
    return `Use at most ${String(SLUG_CHARACTERS_MAX)} characters, not ${String(slug.length)}.`;
  const stranger = [...slug].find((character) => !SLUG_CHARACTER.test(character));
  if (stranger !== undefined)
    return `${stranger === " " ? "A space" : `“${stranger}”`} isn't allowed. Use a-z, 0-9, _ and -.`;
  if (!SLUG_START.test(slug)) return "Start with a letter or digit.";
  return undefined;
}

/** Makes a slug from other text, with one separator: `Daily sales_2024-03 (EU)` becomes `daily-sales-2024-03-eu`. */
export function slugFrom(text: string): string {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, SLUG_CHARACTERS_MAX)
    .replace(/-+$/, "");
}

/** A free slug: `flights`, else `flights-2`, … */
export function freeSlug(wanted: string, taken: Iterable<string>): string {
  const known = new Set(taken);
  if (!known.has(wanted)) return wanted;
  for (let n = 2; ; n += 1) {
    const end = `-${String(n)}`;
    const slug = wanted.slice(0, SLUG_CHARACTERS_MAX - end.length) + end;
    if (!known.has(slug)) return slug;
  }
}
