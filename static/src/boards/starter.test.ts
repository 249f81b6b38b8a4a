import { describe, expect, it } from "vitest";
import type { Table } from "../api/types";
import { freeName } from "./make";
import { starterText, type Found } from "./starter";

const column = (name: string, type: string) => ({ name, type }) as Table["schema"][number];
const table = { name: "sales", schema: [column("shop", "string"), column("amount", "decimal(18,2)")] } as Table;
const found: Found = { time: undefined, byMonth: false, word: undefined, measure: undefined, sum: undefined };
const widths = (text: string) => [...text.matchAll(/type: kpi.*width: (\d+)/g)].map(([, width]) => Number(width));

describe("a first dashboard", () => {
  it.each<[string, Partial<Found>, string[]]>([
    ["nothing but rows", {}, ["rows"]],
    ["a category", { word: column("shop", "string") }, ["rows", "kinds"]],
    ["a number", { measure: column("pieces", "int32") }, ["rows", "average"]],
    [
      "a number that is summed",
      { measure: column("amount", "decimal(18,2)"), sum: column("amount", "decimal(18,2)") },
      ["rows", "total", "average"],
    ],
  ])("has numbers of %s that fill a row", (_, more, ids) => {
    const text = starterText(table, { ...found, ...more }, undefined, undefined);
    expect([...text.matchAll(/id: (\w+), type: kpi/g)].map(([, id]) => id)).toEqual(ids);
    expect(widths(text).reduce((sum, width) => sum + width, 0)).toBe(12);
  });
});

describe("a dashboard's name", () => {
  it("is like the table's, and none that is taken", () => {
    expect(freeName("sales", [])).toBe("sales");
    expect(freeName("Ümsätze 24", ["a"])).toBe("umsatze-24");
    expect(freeName("", ["dashboard"])).toBe("dashboard-2");
    expect(freeName("x".repeat(63), ["x".repeat(63)])).toHaveLength(63);
  });
});
