/** Rows of numbers alone that leave room are spread over the whole row; all other panels stand as they are written. */
import type { Panel } from "./document";

const COLUMNS = 12;

export interface Place {
  /** Columns of the full grid. */
  span: number;
  /** Whether it is half a row where the grid is narrow. */
  half: boolean;
}

/** Panels as they fall into rows, one after another. */
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

/** Where each panel stands, by its id. */
export function placesOf(panels: readonly Panel[]): Map<string, Place> {
  const found = new Map<string, Place>();
  for (const row of rowsOf(panels)) {
    const numbers = row.every(({ type }) => type === "kpi");
    const left = COLUMNS - row.reduce((sum, { width }) => sum + width, 0);
    row.forEach(({ id, width }, at) => {
      // The first ones take what can't be shared out evenly.
      const more = numbers ? Math.floor(left / row.length) + (at < left % row.length ? 1 : 0) : 0;
      found.set(id, { span: width + more, half: false });
    });
  }
  // Where the grid is narrow numbers stand in pairs, and one that is left over by itself.
  panels.forEach((panel, at) => {
    const [place, next] = [found.get(panel.id), panels[at + 1]];
    const other = next && found.get(next.id);
    if (!place || !other || place.half || !isSmall(panel) || !isSmall(next)) return;
    place.half = other.half = true;
  });
  return found;
}
