/** Runs an action on many files, with limited concurrency. */
import { asFailure, type ApiFailure } from "../api/failure";

const CONCURRENCY_MAX = 3;

export interface Failure {
  key: string;
  error: ApiFailure;
}

/** @returns the failures. After an abort no more actions start. */
export async function each(
  items: readonly string[],
  work: (key: string) => Promise<unknown>,
  onDone: (done: number) => void,
  signal: AbortSignal,
): Promise<Failure[]> {
  const failures: Failure[] = [];
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (next < items.length && !signal.aborted) {
      const key = items[next] ?? "";
      next += 1;
      try {
        await work(key);
      } catch (error) {
        failures.push({ key, error: asFailure(error) });
      }
      done += 1;
      onDone(done);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY_MAX }, worker));
  return failures;
}
