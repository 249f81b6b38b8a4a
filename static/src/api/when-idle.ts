import { useEffect, useRef, useState } from "preact/hooks";
import { ApiFailure } from "./failure";

/** Pause between two attempts. */
const RETRY_MS = 1_000;

/**
 * Repeats an operation while it is refused because of a run of its pipeline. `onRefused` is called after each refusal.
 * Never settles once the signal is aborted.
 *
 * @throws ApiFailure any other failure
 */
export async function whenIdle<T>(operation: () => Promise<T>, signal: AbortSignal, onRefused: () => void): Promise<T> {
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== "pipeline_busy") throw error;
    }
    onRefused();
    await new Promise<void>((resolve) =>
      setTimeout(() => {
        if (!signal.aborted) resolve();
      }, RETRY_MS),
    );
  }
}

/** {@link whenIdle} until the component is removed. `waiting`: a run is in progress. */
export function useWhenIdle() {
  const [waiting, setWaiting] = useState(false);
  const removed = useRef(new AbortController());
  useEffect(() => () => removed.current.abort(), []);
  const start = <T>(operation: () => Promise<T>): Promise<T> =>
    whenIdle(operation, removed.current.signal, () => setWaiting(true)).finally(() => setWaiting(false));
  return { waiting, whenIdle: start };
}
