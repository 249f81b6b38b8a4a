import { Play, Square } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../components/button";
import { duration } from "../../format/time";
import { printed } from "../../browser/shortcuts";
import { cancel, stateOf } from "./state";

/** Query time is shown in tenths of a second. */
const TICK_MS = 100;

export function ElapsedQueryTime({ since }: { since: number }) {
  const [ms, setMs] = useState(performance.now() - since);
  useEffect(() => {
    const timer = setInterval(() => setMs(performance.now() - since), TICK_MS);
    return () => clearInterval(timer);
  }, [since]);
  return <span class="num">{duration(ms)}</span>;
}

export function RunControls({ slug, onRun }: { slug: string; onRun: () => void }) {
  const state = stateOf(slug);
  const running = state.running.value;
  const keys = printed("mod+Enter").join(" ");
  return (
    <>
      <Button
        variant="primary"
        icon={<Play />}
        busy={running !== undefined}
        disabled={!running && !state.text.value.trim()}
        title={`Run the query or the selection (${keys})`}
        onClick={onRun}
      >
        Run query
      </Button>
      {running && (
        <Button icon={<Square />} busy={running.cancelling} onClick={() => void cancel(slug)}>
          {running.cancelling ? "Cancelling" : "Cancel"}
        </Button>
      )}
    </>
  );
}
