/** Colours and fonts of charts, read from the current theme tokens. */

export interface ChartTheme {
  series: string[];
  text: string;
  dim: string;
  line: string;
  surface: string;
  over: string;
  strong: string;
  font: string;
  /** Sequential ramp, low to high; or diverging around zero. */
  ramp: [string, string];
  ways: [string, string, string];
  still: boolean;
  /** Width of the chart, in pixels. */
  width: number;
}

const SERIES = 8;

/** Resolves tokens on an element, because a token holds the colours of both themes. */
export function chartThemeOf(box: HTMLElement): ChartTheme {
  const probe = document.createElement("span");
  box.append(probe);
  const colour = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const look: ChartTheme = {
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
