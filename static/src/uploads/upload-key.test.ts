import { describe, expect, it } from "vitest";
import { globsToAdd, likelyTable, uploadKeyOf, readsCompressed } from "./upload-key";

describe("upload destination", () => {
  it.each([
    [["orders/*.csv"], "may.csv", "orders/may.csv"],
    [["*.csv"], "may.csv", "may.csv"],
    [["**/*.csv"], "may.csv", "may.csv"],
    [["in/**/*.csv"], "may.csv", "in/may.csv"],
    [["orders/*.csv", "orders/*.csv.gz"], "may.csv.gz", "orders/may.csv.gz"],
    [["orders/{2023,2024}-*.csv"], "2024-05.csv", "orders/2024-05.csv"],
    [["orders/*.csv"], "may.tsv", undefined],
    [["big.csv"], "other.csv", undefined],
    [["20??/x.csv"], "x.csv", undefined],
  ])("in %j of %s is %s", (globs, name, key) => expect(uploadKeyOf(globs, name)).toBe(key));

  it("can be found for globs with a folder of the table's name", () => {
    const globs = globsToAdd("orders", "may.tsv");
    expect(uploadKeyOf(globs, "june.tsv")).toBe("orders/june.tsv");
  });

  it("says whether compressed files are read", () => {
    expect(readsCompressed(["a/*.csv", "a/*.csv.gz"], "x.csv")).toBe(true);
    expect(readsCompressed(["a/*.csv"], "x.csv")).toBe(false);
    expect(readsCompressed(["a/*"], "x.csv.gz")).toBe(false);
  });
});

it("a file belongs to the table that reads it, or whose name it shares", () => {
  const tables = [
    { name: "orders", globs: ["orders/*.csv"] },
    { name: "customer_list", globs: ["customers/*.csv"] },
  ];
  expect(likelyTable(tables, "orders-2024-05.csv")?.name).toBe("orders");
  expect(likelyTable(tables, "Customer May.csv")?.name).toBe("customer_list");
  expect(likelyTable(tables, "x.csv")).toBeUndefined();
  expect(likelyTable(tables.slice(0, 1), "x.csv")?.name).toBe("orders");
});
