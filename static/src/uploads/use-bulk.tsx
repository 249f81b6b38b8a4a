import { useEffect, useRef, useState } from "preact/hooks";
import { client, keys } from "../api/queries";
import { Note } from "../components/states";
import { Bar } from "../components/status";
import { toast } from "../components/toasts";
import { count, counted } from "../format/number";
import { useUnsaved } from "../browser/unsaved";
import { nameOf, pipelineOf } from "./keys";
import { each, type Failure } from "./bulk";

/** Files that a dialog lists. */
export const SHOWN_MAX = 5;

interface Bulk {
  total: number;
  done: number;
  /** Set when it has ended. */
  failures?: Failure[];
  stopped?: boolean;
}

/** A bulk action with progress and cancellation. `verb`: past participle. */
export function useBulk(verb: string) {
  const [state, setState] = useState<Bulk>();
  const controller = useRef<AbortController>();
  const busy = state !== undefined && !state.failures;
  useUnsaved(`files that are being ${verb}`, busy);
  useEffect(() => () => controller.current?.abort(), []);
  const begin = async (items: readonly string[], work: (key: string) => Promise<unknown>): Promise<boolean> => {
    const { signal } = (controller.current = new AbortController());
    const total = items.length;
    let done = 0;
    setState({ total, done });
    const failures = await each(items, work, (now) => setState({ total, done: (done = now) }), signal);
    const stopped = done < total;
    setState({ total, done, failures, stopped });
    void client.invalidateQueries({ queryKey: ["lake"] });
    // What a pipeline's tables lack or have too much.
    for (const slug of new Set(items.map(pipelineOf)))
      if (slug) void client.invalidateQueries({ queryKey: keys.pipeline(slug) });
    if (failures.length > 0 || stopped) return false;
    toast.done(`${counted(total, "file")} ${verb}`);
    return true;
  };
  const stop = () => controller.current?.abort();
  return { state, begin, busy, onStop: busy ? stop : undefined };
}

export function Outcome({ state, verb }: { state: Bulk | undefined; verb: string }) {
  if (!state) return null;
  const { total, done, failures, stopped } = state;
  if (!failures)
    return (
      <div class="row">
        <Bar done={done} total={total} label={verb} />
        <span class="num">
          {count(done)} of {count(total)}
        </span>
      </div>
    );
  return (
    <>
      {stopped && (
        <Note tone="warn">
          Stopped: {count(done - failures.length)} of {counted(total, "file")} are {verb}, the rest is as it was.
        </Note>
      )}
      <Failures failures={failures} total={total} verb={verb} />
    </>
  );
}

function Failures({ failures, total, verb }: { failures: Failure[]; total: number; verb: string }) {
  if (failures.length === 0) return null;
  return (
    <Note tone="bad">
      <p>
        {count(failures.length)} of {counted(total, "file")} weren&apos;t {verb}.
      </p>
      <ul>
        {failures.slice(0, SHOWN_MAX).map(({ key, error }) => (
          <li key={key}>
            <code>{nameOf(key)}</code>: {error.message}
          </li>
        ))}
      </ul>
      {failures.length > SHOWN_MAX && <p>and {counted(failures.length - SHOWN_MAX, "more file", "more files")}</p>}
    </Note>
  );
}
