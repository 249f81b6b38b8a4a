import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { shownTheme } from "../../browser/theme";
import { Failed } from "../states";
import type { Drawing } from "./engine";
import { chartThemeOf } from "./theme";
import { optionOf } from "./option";
import { shapeOf } from "./shape";
import { inTurn } from "./turns";
import { AsTable } from "./as-table";
import type { ChartProps } from "./spec";
import "./chart.css";

export { guessChart } from "./guess";
export type { ChartField, ChartProps, ChartSpec, ChartType, Compared } from "./spec";

const HEIGHT_PX = 280;

/** Chart of a result. Loads ECharts with the first chart; screen readers get a table. */
export function Chart({ label, spec, columns, rows, height = HEIGHT_PX, fill, compared }: ChartProps) {
  const shape = useMemo(() => shapeOf(spec, columns, rows, compared), [spec, columns, rows, compared]);
  const style = fill ? {} : { height: `${height}px` };
  return (
    <figure class={fill ? "chart fill" : "chart"} style={style}>
      {shape.kind === "none" ? (
        <div class="chart-empty">{shape.why}</div>
      ) : (
        <Canvas label={label} shape={shape} spec={spec} />
      )}
      {shape.notes.length > 0 && <figcaption class="chart-notes">{shape.notes.join(" ")}</figcaption>}
      {shape.kind !== "none" && <AsTable label={label} spec={spec} columns={columns} rows={rows} />}
    </figure>
  );
}

type Drawn = Exclude<ReturnType<typeof shapeOf>, { kind: "none" }>;

function Canvas({ label, shape, spec }: { label: string; shape: Drawn; spec: ChartProps["spec"] }) {
  const box = useRef<HTMLDivElement>(null);
  const drawing = useSignal<Drawing | undefined>(undefined);
  const failed = useSignal<unknown>(undefined);
  const tries = useSignal(0);
  /** Rounded: layout depends on it, single pixels don't matter. */
  const size = useSignal("");
  const theme = shownTheme.value;
  const latest = useRef({ shape, spec });
  latest.current = { shape, spec };
  /** What is drawn already. */
  const drawn = useRef<unknown[]>([]);

  useEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    let made: Drawing | undefined;
    let gone = false;
    let cancel = () => undefined as void;
    const measure = () => {
      size.value = [node.clientWidth, node.clientHeight].map((px) => Math.round(px / 20)).join();
    };
    const observer = new ResizeObserver(() => {
      made?.resize();
      measure();
    });
    import("./engine").then(
      ({ start }) => {
        if (gone) return;
        cancel = inTurn(() => {
          const { shape, spec } = latest.current;
          made = start(node);
          made.setOption(optionOf(shape, spec, chartThemeOf(node)));
          measure();
          drawn.current = [made, shape, spec, shownTheme.value, size.value];
          drawing.value = made;
          observer.observe(node);
        });
      },
      (error: unknown) => {
        failed.value = error;
      },
    );
    return () => {
      gone = true;
      cancel();
      observer.disconnect();
      made?.dispose();
      drawing.value = undefined;
    };
  }, [tries.value, drawing, failed, size]);

  const ready = drawing.value;
  const sized = size.value;
  useEffect(() => {
    const wanted = [ready, shape, spec, theme, sized];
    if (wanted.every((one, at) => one === drawn.current[at])) return;
    if (ready && box.current && !ready.isDisposed()) {
      drawn.current = wanted;
      ready.setOption(optionOf(shape, spec, chartThemeOf(box.current)), { notMerge: true });
    }
  }, [ready, shape, spec, theme, sized]);

  if (failed.value) {
    return (
      <Failed
        title="Couldn't load the chart library"
        error={failed.value}
        onRetry={() => {
          failed.value = undefined;
          tries.value += 1;
        }}
      />
    );
  }
  return (
    <div
      ref={box}
      class="chart-canvas"
      role="img"
      aria-label={label}
      aria-busy={!ready}
      data-drawn={ready ? "" : undefined}
    />
  );
}
