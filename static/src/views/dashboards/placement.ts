/** Places panels on the grid. */
import type { Panel } from "./document";

const COLUMNS = 12;

export interface PanelPlacement {
  /** Columns of the full grid. */
  span: number;
  /** Whether it takes half a row on narrow screens. */
  half: boolean;
  /** Position while a panel is dragged. */
  order?: number;
}

const isSmall = ({ type, width }: Panel): boolean => type === "kpi" && width <= COLUMNS / 2;

/** Placement of each panel, by ID: the same for readers, in print and in the editor. */
export function placementsOf(panels: readonly Panel[]): Map<string, PanelPlacement> {
  const found = new Map<string, PanelPlacement>();
  for (const { id, width } of panels) found.set(id, { span: width, half: false });
  // On narrow screens KPIs are in pairs, the last one possibly alone.
  panels.forEach((panel, at) => {
    const [place, next] = [found.get(panel.id), panels[at + 1]];
    const other = next && found.get(next.id);
    if (!place || !other || place.half || !isSmall(panel) || !isSmall(next)) return;
    place.half = other.half = true;
  });
  return found;
}
