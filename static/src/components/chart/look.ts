/** Colours and type of charts, read from the tokens as the page shows them now. */

export interface Look {
  series: string[];
  text: string;
  dim: string;
  line: string;
  surface: string;
  over: string;
  strong: string;
  font: string;
  /** From little to much; from far below to far above zero. */
  ramp: [string, string];
  ways: [string, string, string];
  still: boolean;
  /** Of the chart, in pixels. */
  width: number;
}

const SERIES = 8;

/** A token holds both themes' colours; what an element has of it is the one that is shown. */
export function lookOf(box: HTMLElement): Look {
  const probe = document.createElement("span");
  box.append(probe);
  const colour = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const look: Look = {
    series: Array.from({ length: SERIES }, (_, at) => colour(`chart-${at + 1}`)),
    text: colour("text"),
    dim: colour("text-2"),
    line: colour("border"),
    surface: colour("surface"),
    over: colour("surface-2"),
    strong: colour("border-strong"),
    font: getComputedStyle(box).fontFamily,
    ramp: [colour("surface-3"), colour("chart-1")],
    ways: [colour("chart-1"), colour("surface-3"), colour("chart-2")],
    still: window.matchMedia("(prefers-reduced-motion: reduce)").matches,
    width: box.clientWidth,
  };
  probe.remove();
  return look;
}
