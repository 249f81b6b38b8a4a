import { describe, expect, it } from "vitest";
import { slotsOf } from "./colours";

describe("value colours", () => {
  it("don't depend on row order", () => {
    const names = ["North", "South", "West", "East"];
    expect(Object.fromEntries(slotsOf([...names].reverse(), 8))).toEqual(Object.fromEntries(slotsOf(names, 8)));
  });
  it("are distinct for as many values as there are colours", () => {
    const names = Array.from({ length: 8 }, (_, at) => `value ${at}`);
    expect(new Set(slotsOf(names, 8).values()).size).toBe(8);
    expect(slotsOf([...names, "ninth"], 8).size).toBe(9);
  });
  it("are stable when other values are filtered out, unless two values collide", () =>
    expect(slotsOf(["South"], 8).get("South")).toBe(slotsOf(["South", "North"], 8).get("South")));
});
