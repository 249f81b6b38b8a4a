/**
 * Temporary prefixes for samples of files while a pipeline is created from them: the service infers and previews only
 * files below a pipeline's prefix. Such a prefix has no config, starts no runs, and disappears with its sample.
 */
import { ApiFailure } from "./failure";

const DRAFT = /^draft-[0-9a-f]{16}$/;

/** Whether the slug is such a temporary prefix. */
export const isDraft = (slug: string): boolean => DRAFT.test(slug);

export function newDraft(): string {
  const digits = crypto.getRandomValues(new Uint8Array(8));
  return `draft-${[...digits].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Key of a sample in a message, also relative to its prefix. */
const SAMPLE = /`(?:pipelines\/draft-[0-9a-f]{16}\/[^`]*|\.\d+(?:-\w+)?\/[^`]+)`/g;

/** A message about samples with the names of the files they were taken from; `name`: the file of an unknown sample. */
export const withFileNames = (
  message: string,
  samples: readonly { key: string; name: string }[],
  name: string,
): string =>
  message.replace(SAMPLE, (quoted) => {
    const sample = samples.find(({ key }) => quoted === `\`${key}\`` || `${key}\``.endsWith(`/${quoted.slice(1)}`));
    return `\`${sample?.name ?? name}\``;
  });

/** The failure with such a message. */
export function ofFiles(
  failure: ApiFailure,
  samples: readonly { key: string; name: string }[],
  name: string,
): ApiFailure {
  return new ApiFailure(failure.status, failure.code, withFileNames(failure.message, samples, name), {
    problems: failure.problems as Record<string, never>[],
    ...(failure.requestId === undefined ? {} : { request_id: failure.requestId }),
    ...(failure.retryAfter === undefined ? {} : { retryAfter: failure.retryAfter }),
  });
}
