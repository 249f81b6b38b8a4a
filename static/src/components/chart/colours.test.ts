import { readFileSync } from "node:fs";
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
  it("stay when other values are filtered out or come, and are those of other charts", () => {
    const known = new Map<string, number>();
    const names = ["Midwest", "Northeast", "South", "West", "East", "null"];
    const all = slotsOf(names, 8, known);
    for (const name of names) expect(slotsOf([name], 8, known).get(name)).toBe(all.get(name));
    const more = slotsOf(["A", "B", ...names], 8, known);
    for (const name of names) expect(more.get(name)).toBe(all.get(name));
  });
  it("leave the grey to grouped values, while there are others", () => {
    const names = Array.from({ length: 7 }, (_, at) => `value ${at}`);
    const slots = slotsOf([...names, "Other"], 8);
    expect(slots.get("Other")).toBe(7);
    expect(new Set(slots.values()).size).toBe(8);
    expect([...slotsOf(names, 8).values()]).not.toContain(7);
  });
});

/** Cone responses of protanopia and deuteranopia, in linear RGB (Machado et al. 2009). */
const VISIONS = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};
const linear = (hex: string) =>
  [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
const times = (matrix: number[][], by: number[]) =>
  matrix.map((row) => row.reduce((sum, part, at) => sum + part * (by[at] ?? 0), 0));
const LMS = [
  [0.4122214708, 0.5363325363, 0.0514459929],
  [0.2119034982, 0.6806995451, 0.1073969566],
  [0.0883024619, 0.2817188376, 0.6299787005],
];
const OKLAB = [
  [0.2104542553, 0.793617785, -0.0040720468],
  [1.9779984951, -2.428592205, 0.4505937099],
  [0.0259040371, 0.7827717662, -0.808675766],
];
const oklab = (hex: string, vision: number[][]) =>
  times(
    OKLAB,
    times(
      LMS,
      times(vision, linear(hex)).map((part) => Math.min(1, Math.max(0, part))),
    ).map(Math.cbrt),
  );

describe.each(Object.entries(VISIONS))("chart colours with %s vision", (_, vision) => {
  const tokens = readFileSync("src/theme/tokens.css", "utf8");
  const pairs = [...tokens.matchAll(/--chart-\d: light-dark\((#\w{6}), (#\w{6})\)/g)];
  it.each([
    ["light", 1],
    ["dark", 2],
  ])("differ from each other in the %s theme", (_, theme) => {
    const colours = pairs.map((pair) => oklab(pair[theme] ?? "", vision));
    expect(colours).toHaveLength(8);
    const distances = colours.flatMap((one, at) =>
      colours.slice(0, at).map((other) => Math.hypot(...one.map((part, index) => part - (other[index] ?? 0)))),
    );
    // Two blues of different lightness have 0.1.
    expect(Math.min(...distances)).toBeGreaterThan(0.08);
  });
});
