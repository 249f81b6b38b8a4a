import { expect, it } from "vitest";
import type { Panel } from "./document";
import { placementsOf } from "./placement";

const panels = (...sizes: [string, number][]) =>
  sizes.map(([type, width], at) => ({ id: String(at), type, width }) as unknown as Panel);
const spans = (all: Panel[]) => [...placementsOf(all).values()].map(({ span }) => span);

it("KPIs with room in their row fill it", () => {
  expect(spans(panels(["kpi", 3], ["kpi", 3], ["bar", 12]))).toEqual([6, 6, 12]);
  expect(spans(panels(["kpi", 3], ["kpi", 3], ["kpi", 3]))).toEqual([4, 4, 4]);
  expect(spans(panels(["kpi", 2], ["kpi", 2], ["kpi", 2], ["kpi", 2], ["kpi", 2]))).toEqual([3, 3, 2, 2, 2]);
});
it("full rows, and rows with other panels, are unchanged", () => {
  expect(spans(panels(["kpi", 3], ["kpi", 3], ["kpi", 3], ["kpi", 3]))).toEqual([3, 3, 3, 3]);
  expect(spans(panels(["kpi", 3], ["line", 6]))).toEqual([3, 6]);
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
