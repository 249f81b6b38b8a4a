/** Holds requests of a pipeline whose slug is being changed: the service no longer knows the old one. */
import { ApiFailure } from "./failure";

interface Hold {
  /** Resolves with whether the slug is gone. */
  ended: Promise<boolean>;
  end: (isGone: boolean) => void;
}

const holds = new Map<string, Hold>();

/** The pipeline that a request is for. */
function slugOf(path: string): string | undefined {
  const [, slug] = /^\/api\/p\/([^/]+)/.exec(path) ?? [];
  if (slug === undefined) return undefined;
  try {
    return decodeURIComponent(slug);
  } catch {
    return undefined;
  }
}

/** Waits while the pipeline of the request is held. @throws ApiFailure its slug is gone */
export async function unlessHeld(path: string): Promise<void> {
  const hold = holds.get(slugOf(path) ?? "");
  if (hold && (await hold.ended)) throw new ApiFailure(404, "pipeline_not_found", "the pipeline has another slug now");
}

/**
 * Runs an operation that takes the slug away, without requests for it until `left` has resolved: by then no view asks
 * for it.
 */
export async function holding<T>(
  slug: string,
  operation: () => Promise<T>,
  left: (made: T) => Promise<unknown>,
): Promise<T> {
  let end: Hold["end"] = () => undefined;
  const hold = { ended: new Promise<boolean>((resolve) => (end = resolve)), end: (isGone: boolean) => end(isGone) };
  holds.set(slug, hold);
  try {
    const made = await operation();
    hold.end(true);
    await left(made).catch(() => undefined);
    return made;
  } finally {
    hold.end(false);
    if (holds.get(slug) === hold) holds.delete(slug);
  }
}
