import { useLayoutEffect, useMemo } from "preact/hooks";
import type { Layout } from "./row";

/** The class of a column's cells, or of the rows: where they stand is a rule of a sheet. */
export const columnClass = (grid: string, column: number): string => `${grid}-c${column}`;
export const rowClass = (grid: string): string => `${grid}-row`;

function rules(grid: string, { columns, offsets, gutter, width }: Layout): string {
  const cells = columns.map((_, at) => {
    const left = offsets[at] ?? 0;
    return `.${columnClass(grid, at)}{left:${gutter + left}px;width:${(offsets[at + 1] ?? 0) - left}px}`;
  });
  return `.${rowClass(grid)}{width:${width}px}.${rowClass(grid)}>.grid-number{width:${gutter}px}${cells.join("")}`;
}

/** Places all cells of a grid by one sheet: styles of their own would take more to make and to work out. */
export function useColumnStyles(grid: string, layout: Layout): void {
  const sheet = useMemo(() => new CSSStyleSheet(), []);
  useLayoutEffect(() => {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    return () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    };
  }, [sheet]);
  useLayoutEffect(() => sheet.replaceSync(rules(grid, layout)), [sheet, grid, layout]);
}
