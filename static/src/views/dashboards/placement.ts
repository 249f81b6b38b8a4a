/** Widens rows of KPIs to the full width; other panels keep their size. */
import type { Panel } from "./document";

const COLUMNS = 12;

export interface PanelPlacement {
  /** Columns of the full grid. */
  span: number;
  /** Whether it takes half a row on narrow screens. */
  half: boolean;
}

/** Splits panels into grid rows. */
function rowsOf(panels: readonly Panel[]): Panel[][] {
  const rows: Panel[][] = [];
  let room = 0;
  for (const panel of panels) {
    if (panel.width > room) {
      rows.push([]);
      room = COLUMNS;
    }
    rows.at(-1)?.push(panel);
    room -= panel.width;
  }
  return rows;
}

const isSmall = ({ type, width }: Panel): boolean => type === "kpi" && width <= COLUMNS / 2;

/** Placement of each panel, by ID. `widen`: whether rows of KPIs fill the width. */
export function placementsOf(panels: readonly Panel[], widen = true): Map<string, PanelPlacement> {
  const found = new Map<string, PanelPlacement>();
  for (const row of rowsOf(panels)) {
    const numbers = widen && row.every(({ type }) => type === "kpi");
    const left = COLUMNS - row.reduce((sum, { width }) => sum + width, 0);
    row.forEach(({ id, width }, at) => {
      // The first panels take the remainder.
      const more = numbers ? Math.floor(left / row.length) + (at < left % row.length ? 1 : 0) : 0;
      found.set(id, { span: width + more, half: false });
    });
  }
  // On narrow screens KPIs are in pairs, the last one possibly alone.
  panels.forEach((panel, at) => {
    const [place, next] = [found.get(panel.id), panels[at + 1]];
    const other = next && found.get(next.id);
    if (!place || !other || place.half || !isSmall(panel) || !isSmall(next)) return;
    place.half = other.half = true;
  });
  return found;
}
