/** Places the labels of categories, so that every one of few is shown. */

/** Room between two labels, in pixels. */
const GAP_PX = 8;
const LINE_PX = 14;
/** Least distance of labels turned by 45 degrees and by 90 degrees. */
const SLANTED_PX_MIN = 18;
const UPRIGHT_PX_MIN = 15;
/** Bounds of a turned label. */
const TURNED_PX_MAX = 132;
/** A label shorter than this says nothing. */
const CUT_PX_MIN = 44;
const LINES_MAX = 2;

interface Room {
  /** Of the axis, in pixels. */
  length: number;
  /** Across the axis. */
  depth: number;
  measure: (text: string) => number;
}

export interface Labelling {
  texts: string[];
  rotate: number;
  /** Longer texts are cut. */
  width: number;
  /** Whether some labels must be left out. */
  isSparse: boolean;
}

/** Breaks a text at spaces and after hyphens into lines of a width; undefined if it doesn't fit. */
function wrapped(text: string, width: number, measure: Room["measure"]): string | undefined {
  const lines: string[] = [];
  for (const part of text.split(/(?<=[\s\-/])/u)) {
    const longer = `${lines.at(-1) ?? ""}${part}`;
    if (lines.length > 0 && measure(longer.trimEnd()) <= width) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  const done = lines.map((line) => line.trimEnd());
  return done.length <= LINES_MAX && done.every((line) => measure(line) <= width) ? done.join("\n") : undefined;
}

/** Labels below a horizontal axis: level, in two lines, slanted or upright, whichever shows all of them first. */
export function labelsBelow(texts: readonly string[], { length, depth, measure }: Room): Labelling {
  const step = length / Math.max(1, texts.length);
  const level = step - GAP_PX;
  const whole = texts.map((text) => (measure(text) <= level ? text : wrapped(text, level, measure)));
  if (whole.every((text) => text !== undefined)) return { texts: whole, rotate: 0, width: step, isSparse: false };
  const turned = Math.min(TURNED_PX_MAX, Math.max(CUT_PX_MIN, depth * 0.4));
  const isSparse = step < UPRIGHT_PX_MIN;
  const rotate = isSparse ? 0 : step < SLANTED_PX_MIN ? 90 : 45;
  return { texts: [...texts], rotate, width: isSparse ? 140 : turned, isSparse };
}

/** Labels beside a vertical axis. `length`: its height. */
export function labelsBeside(texts: readonly string[], { length, depth }: Omit<Room, "measure">): Labelling {
  const isSparse = length / Math.max(1, texts.length) < LINE_PX;
  return { texts: [...texts], rotate: 0, width: Math.max(CUT_PX_MIN, Math.min(200, depth * 0.35)), isSparse };
}
