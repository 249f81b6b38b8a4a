/** Slugs identify pipelines in URLs and in the store. */
const SLUG_CHARACTERS_MAX = 63;

export const SLUG_HINT = "a-z, 0-9, _ and -, starting with a letter or digit";

/** Validates a slug like the service; undefined if valid. */
export function slugFault(slug: string): string | undefined {
  if (slug === "") return "Enter a slug.";
  if (slug.length > SLUG_CHARACTERS_MAX)
    return `Use at most ${String(SLUG_CHARACTERS_MAX)} characters, not ${String(slug.length)}.`;
  const stranger = [...slug].find((character) => !/[a-z0-9_-]/.test(character));
  if (stranger !== undefined)
    return `${stranger === " " ? "A space" : `“${stranger}”`} isn't allowed. Use a-z, 0-9, _ and -.`;
  if (!/^[a-z0-9]/.test(slug)) return "Start with a letter or digit.";
  return undefined;
}

/** Makes a slug from other text: `Daily sales (EU)` becomes `daily-sales-eu`. */
export function slugFrom(text: string): string {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^[-_]+/, "")
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
