/** Computes the target of a dragged panel, and the size of a resized one. */
import { GRID_COLUMNS, PANEL_HEIGHT_PX_MAX } from "../../api/rules";

export const HEIGHT_STEP_PX = 20;
const HEIGHT_PX_MIN = 80;
/** Narrower grids show one panel per row, as in `board.css`. */
export const WIDE_PX = 860;
/** Gap between panels, as in `board.css`. */
const GAP_PX = 12;

export interface Size {
  /** In columns. */
  width: number;
  /** In pixels. */
  height: number;
}

export interface Drop {
  /** The panel beside which the dragged one goes. */
  id: string;
  side: "left" | "right" | "top" | "bottom";
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
  width: number;
  height: number;
}

interface Point {
  x: number;
  y: number;
}

/** Squared distance of a point from a box; 0 within it. */
function distance({ left, right, top, bottom }: Box, { x, y }: Point): number {
  const dx = Math.max(left - x, 0, x - right);
  const dy = Math.max(top - y, 0, y - bottom);
  return dx * dx + dy * dy;
}

/** The place for the dragged panel: beside the nearest panel; above or below one that fills its row. */
export function dropAt(
  boxes: readonly { id: string; box: Box }[],
  point: Point,
  dragged: string,
  gridWidth: number,
): Drop | undefined {
  const others = boxes.filter(({ id }) => id !== dragged);
  const [first] = others;
  if (!first) return undefined;
  const own = boxes.find(({ id }) => id === dragged);
  // Over its own place it stays there.
  if (own && distance(own.box, point) === 0) return undefined;
  const nearest = others.reduce(
    (best, one) => (distance(one.box, point) < distance(best.box, point) ? one : best),
    first,
  );
  const { id, box } = nearest;
  if (box.width > gridWidth * 0.9) return { id, side: point.y < box.top + box.height / 2 ? "top" : "bottom" };
  return { id, side: point.x < box.left + box.width / 2 ? "left" : "right" };
}

/** The new index of a dragged panel. */
export function moveTarget(ids: readonly string[], dragged: string, { id, side }: Drop): number {
  const at = ids.filter((one) => one !== dragged).indexOf(id);
  return side === "left" || side === "top" ? at : at + 1;
}

/** The panels in the order that they have with the dragged one at its target. */
export function reordered(ids: readonly string[], dragged: string, drop: Drop | undefined): string[] {
  if (!drop) return [...ids];
  const rest = ids.filter((one) => one !== dragged);
  const at = moveTarget(ids, dragged, drop);
  return [...rest.slice(0, at), dragged, ...rest.slice(at)];
}

/** The size after the corner moved by `by` pixels, on the grid. In a narrow grid only the height changes. */
export function resized({ width, height }: Size, by: Point, gridWidth: number): Size {
  const column = (gridWidth + GAP_PX) / GRID_COLUMNS;
  const columns = gridWidth < WIDE_PX ? width : Math.round(width + by.x / column);
  const steps = Math.round((height + by.y) / HEIGHT_STEP_PX) * HEIGHT_STEP_PX;
  return {
    width: Math.min(GRID_COLUMNS, Math.max(1, columns)),
    height: by.y === 0 ? height : Math.min(PANEL_HEIGHT_PX_MAX, Math.max(HEIGHT_PX_MIN, steps)),
  };
}
