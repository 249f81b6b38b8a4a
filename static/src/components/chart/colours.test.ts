import { describe, expect, it } from "vitest";
import { slotsOf } from "./colours";

describe("the colour of a value", () => {
  it("is the same whatever the order of the rows", () => {
    const names = ["North", "South", "West", "East"];
    expect(Object.fromEntries(slotsOf([...names].reverse(), 8))).toEqual(Object.fromEntries(slotsOf(names, 8)));
  });
  it("is another for each of as many values as there are colours", () => {
    const names = Array.from({ length: 8 }, (_, at) => `value ${at}`);
    expect(new Set(slotsOf(names, 8).values()).size).toBe(8);
    expect(slotsOf([...names, "ninth"], 8).size).toBe(9);
  });
  it("stays where other values are filtered out and none stands in its way", () =>
    expect(slotsOf(["South"], 8).get("South")).toBe(slotsOf(["South", "North"], 8).get("South")));
});
