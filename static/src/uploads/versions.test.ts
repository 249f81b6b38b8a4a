import { describe, expect, it } from "vitest";
import { differInPeriod, isVersionName, sameRows, versionsAmong } from "./versions";

describe("a name is of another version of a file", () => {
  it.each([
    ["2024-03 (korrigiert).csv", "2024-03.csv"],
    ["2024-03 v2.csv", "2024-03.csv"],
    ["2024-03_corrected.csv", "2024-03.csv"],
    ["2024-03 (1).csv", "2024-03.csv"],
    ["2024-03 v3.csv", "2024-03 v2.csv"],
    ["shop_2024-06_corrected.csv", "shop_2024-06.csv"],
    ["shop_2024-06_corrected.csv.gz", "shop_2024-06.csv"],
    ["shop_2024-06_final.csv", "shop_2024-06-part-002.csv.gz"],
    ["Juni 2024 neu.csv", "shop_2024-06.csv"],
    ["shop 202406.csv", "shop_2024-06.csv"],
    ["Kopie von Kunden.csv", "Kunden.csv"],
    ["orders-new.csv", "orders.csv"],
  ])("%s of %s", (name, other) => expect(isVersionName(name, other)).toBe(true));
  it.each([
    ["2024-03.csv", "2024-04.csv"],
    ["2024-03.csv", "2024-03-05.csv"],
    ["orders_1.csv", "orders_2.csv"],
    ["shop_2024-03_1.csv", "shop_2024-03_2.csv"],
    ["north_2024-03.csv", "south_2024-03.csv"],
    ["new.csv", "final.csv"],
    ["a.csv", "a.csv"],
    ["a.csv", "a.csv.gz"],
    ["a.csv", "a-part-001.csv"],
  ])("%s isn't one of %s", (name, other) => expect(isVersionName(name, other)).toBe(false));
  it("among others", () =>
    expect(versionsAmong(["2024-03.csv", "2024-03 v2.csv", "2024-04.csv"])).toEqual([
      ["2024-03 v2.csv", "2024-03.csv"],
    ]));
  it("periods of names differ", () => {
    expect(differInPeriod("shop_2024-03.csv", "shop_2024-04.csv")).toBe(true);
    expect(differInPeriod("export.csv", "shop_2024-04.csv")).toBe(false);
  });
});

const month = (number: string, from: number, factor = 1) =>
  `id,day,amount\n${Array.from({ length: 20 }, (_, at) => `${from + at},2024-${number}-${String(at + 1).padStart(2, "0")},${at * factor}`).join("\n")}\n`;

describe("a file with other rows of the same header", () => {
  const stored = [
    { name: "a.csv", text: month("03", 0) },
    { name: "b.csv", text: month("04", 100) },
  ];
  it("has most rows of a stored one", () =>
    expect(sameRows(month("03", 0).replace("3,2024-03-04,3", "3,2024-03-04,33"), stored)?.name).toBe("a.csv"));
  it("has the period of a stored one", () => expect(sameRows(month("04", 500, 7), stored)?.name).toBe("b.csv"));
  it("has another period", () => expect(sameRows(month("05", 200), stored)).toBeUndefined());
  it("has another header", () => expect(sameRows(month("03", 0).replace("id", "no"), stored)).toBeUndefined());
  it("has a period that several stored ones have", () =>
    expect(sameRows(month("04", 500, 7), [...stored, { name: "c.csv", text: month("04", 300) }])).toBeUndefined());
});
