/**
 * Where samples of files lie while a new pipeline is proposed from them: the service infers and previews only what lies
 * under a pipeline's prefix. Such a prefix has no config, starts no run, and is gone once its sample is deleted.
 */
const DRAFT = /^draft-[0-9a-f]{16}$/;

/** Whether this is no pipeline of a person's, but holds the sample of one that is being made. */
export const isDraft = (slug: string): boolean => DRAFT.test(slug);

export function newDraft(): string {
  const digits = crypto.getRandomValues(new Uint8Array(8));
  return `draft-${[...digits].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
