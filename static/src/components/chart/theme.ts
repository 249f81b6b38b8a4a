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
  /** Size of the chart, in pixels. */
  width: number;
  height: number;
  /** Width of a text on an axis, in pixels. */
  measure: (text: string) => number;
}

const SERIES = 8;
/** Size of texts, in pixels. */
export const TEXT_PX = 12;
const CHAR_PX = 6.6;

function measureIn(font: string): (text: string) => number {
  const pen = document.createElement("canvas").getContext("2d");
  if (!pen) return (text) => text.length * CHAR_PX;
  pen.font = `${TEXT_PX}px ${font}`;
  return (text) => pen.measureText(text).width;
}

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
    height: box.clientHeight,
    measure: measureIn(getComputedStyle(box).fontFamily),
  };
  probe.remove();
  return look;
}
