import { expect, it } from "vitest";
import type { Panel } from "./document";
import { placementsOf } from "./placement";

const panels = (...sizes: [string, number][]) =>
  sizes.map(([type, width], at) => ({ id: String(at), type, width }) as unknown as Panel);
const spans = (all: Panel[]) => [...placementsOf(all).values()].map(({ span }) => span);

it("panels keep the width that the editor shows", () => {
  expect(spans(panels(["kpi", 3], ["line", 6], ["bar", 12]))).toEqual([3, 6, 12]);
  expect(spans(panels(["kpi", 3], ["kpi", 3]))).toEqual([3, 3]);
});
it("a KPI among other panels takes a full row on narrow screens", () => {
  expect([...placementsOf(panels(["kpi", 3], ["line", 9])).values()].map(({ half }) => half)).toEqual([false, false]);
});
it("an odd KPI takes a full row on narrow screens", () => {
  const halves = [...placementsOf(panels(["kpi", 4], ["kpi", 4], ["kpi", 4], ["line", 12])).values()].map(
    ({ half }) => half,
  );
  expect(halves).toEqual([true, true, false, false]);
});
