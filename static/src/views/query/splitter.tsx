import type { Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { isNumber, persisted } from "../../browser/persisted";

const MIN = 0.15;
const MAX = 0.8;
const STEP = 0.03;
const split = persisted("query.split", 0.4, isNumber);

const within = (value: number): number => Math.min(MAX, Math.max(MIN, value));

/** Height ratio of the editor, shared by all pipelines in this browser. */
export const useSplit = (): Signal<number> => split;

/** Resizes editor and result, by pointer or arrow keys. */
export function Splitter({ split: share, controls }: { split: Signal<number>; controls: string }) {
  const moving = useRef(false);
  const move = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.parentElement?.getBoundingClientRect();
    if (moving.current && box && box.height > 0) share.value = within((event.clientY - box.top) / box.height);
  };
  const key = (event: KeyboardEvent) => {
    const to: Record<string, number> = {
      ArrowUp: share.value - STEP,
      ArrowDown: share.value + STEP,
      Home: MIN,
      End: MAX,
    };
    const value = to[event.key];
    if (value === undefined) return;
    event.preventDefault();
    share.value = within(value);
  };
  return (
    <div
      class="query-splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label="Editor height"
      aria-controls={controls}
      aria-valuemin={MIN * 100}
      aria-valuemax={MAX * 100}
      aria-valuenow={Math.round(within(share.value) * 100)}
      onPointerDown={(event) => {
        moving.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={move}
      onPointerUp={() => (moving.current = false)}
      onPointerCancel={() => (moving.current = false)}
      onKeyDown={key}
    />
  );
}
