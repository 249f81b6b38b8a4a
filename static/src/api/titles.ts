/** Titles of pipelines and dashboards, and their order in lists. */

const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** The order of lists: by what they show. */
export const byText = (a: string, b: string): number => order.compare(a, b);

interface Pipeline {
  slug: string;
  title?: string | null;
}

/** What a pipeline is called in lists. */
export const titleOfPipeline = ({ slug, title }: Pipeline): string => title || slug;

export const byTitle = (a: Pipeline, b: Pipeline): number =>
  byText(titleOfPipeline(a), titleOfPipeline(b)) || byText(a.slug, b.slug);

/**
 * Title of a dashboard's YAML, without its parser: a top-level `title` on one line. Undefined for other notations,
 * where lists show the name.
 */
export function titleOfText(text: string): string | undefined {
  const written = /^title:[ \t]+(.*?)[ \t\r]*$/m.exec(text)?.[1] ?? "";
  const quoted = /^("(?:[^"\\]|\\.)*")(?:\s+#.*)?$/.exec(written)?.[1];
  if (quoted !== undefined) {
    try {
      return String(JSON.parse(quoted)) || undefined;
    } catch {
      return undefined;
    }
  }
  const single = /^'((?:[^']|'')*)'(?:\s+#.*)?$/.exec(written)?.[1];
  if (single !== undefined) return single.replaceAll("''", "'") || undefined;
  return /^["'|>&*!{[#%@`]/.test(written) ? undefined : written.replace(/\s+#.*$/, "") || undefined;
}
