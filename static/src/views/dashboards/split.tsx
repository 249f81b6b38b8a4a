import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { isNumber, persisted } from "../../browser/persisted";

const SHARE: [number, number] = [20, 80];
const STEP = 2;

/** Two resizable panes, side by side or stacked. */
export function Split({ name, left, right }: { name: string; left: ComponentChildren; right: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const share = useMemo(() => persisted(`split.${name}`, 45, isNumber), [name]);
  const set = (percent: number) => {
    share.value = Math.min(SHARE[1], Math.max(SHARE[0], Math.round(percent * 10) / 10));
  };
  const drag = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    handle.setPointerCapture(event.pointerId);
    const move = ({ clientX }: PointerEvent) => {
      const at = box.current?.getBoundingClientRect();
      if (at) set(((clientX - at.left) / at.width) * 100);
    };
    const end = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
    event.preventDefault();
  };
  return (
    <div ref={box} class="dash-split" style={{ "--share": `${share.value}%` }}>
      <div class="dash-split-left">{left}</div>
      <div
        class="dash-split-handle"
        role="separator"
        aria-label="Editor width"
        aria-orientation="vertical"
        aria-valuenow={share.value}
        aria-valuemin={SHARE[0]}
        aria-valuemax={SHARE[1]}
        tabIndex={0}
        onPointerDown={drag}
        onDblClick={() => set(45)}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") set(share.value - STEP);
          else if (event.key === "ArrowRight") set(share.value + STEP);
          else return;
          event.preventDefault();
        }}
      />
      <div class="dash-split-right">{right}</div>
    </div>
  );
}
