import { describe, expect, it } from "vitest";
import { partitionOf, partitionText, partsOf } from "./lineage";
import { suggest } from "./suggest";

const columns = ["day", "vendor", "x"].map((name) => ({ name, type: "string", nullable: true }));

describe("the partition that a row is in", () => {
  it("has the row's values", () => {
    const sibling = "day=2013-01-01/vendor=a";
    expect(partitionOf(sibling, columns, ["2013-05-05", "b c", 1])).toBe("day=2013-05-05/vendor=b c");
  });
  it("is the only one of a table without partitions", () => expect(partitionOf("", columns, ["a", "b", 1])).toBe(""));
  it("has values escaped as the service writes them", () => {
    const of = (value: string | null) => partitionOf("vendor=a", columns, ["", value, 1]);
    expect(of("a/b:c=d%")).toBe("vendor=a%2Fb%3Ac%3Dd%25");
    expect(of("..")).toBe("vendor=%2E%2E");
    expect(of("é")).toBe("vendor=é");
    expect(of("")).toBe("vendor=");
    expect(of(null)).toBe("vendor=__HIVE_DEFAULT_PARTITION__");
    expect(of("__HIVE_DEFAULT_PARTITION__")).toBe("vendor=%5F_HIVE_DEFAULT_PARTITION__");
    expect(of("\u202e")).toBe("vendor=%E2%80%AE");
  });
  it("is not known where a partition column isn't", () =>
    expect(partitionOf("hidden=1", columns, ["", "", 1])).toBeUndefined());
});

describe("a partition", () => {
  it("is told by names and values", () => {
    expect(partsOf("a%3Db=c%2Fd/e=__HIVE_DEFAULT_PARTITION__")).toEqual([
      { name: "a=b", value: "c/d" },
      { name: "e", value: null },
    ]);
    expect(partitionText("day=2013-01-01/vendor=__HIVE_DEFAULT_PARTITION__")).toBe("day = 2013-01-01, vendor = null");
    expect(partitionText("")).toBe("");
  });
  it("with a broken escape is shown as it is", () => expect(partitionText("a=%zz")).toBe("a = %zz"));
});

describe("the chart that a new table suggests", () => {
  const column = (name: string, type: string) => ({ name, type, nullable: true });

  it("is a sum over time where there is something to sum", () => {
    const rows = [
      ["2013-01-01", 5],
      ["2013-03-01", 6],
    ];
    const found = suggest("orders", [column("day", "date"), column("amount", "decimal(10,2)")], rows);
    expect(found?.title).toBe("amount by day");
    expect(found?.sql).toContain('SELECT "day" AS "day", sum("amount") AS "amount"');
  });
  it("has the unit that suits the time it spans", () => {
    const unit = (first: string, last: string) =>
      suggest("t", [column("at", "timestamp")], [[first], [last]])?.sql.match(/date_trunc\('(\w+)'/)?.[1];
    expect(unit("2013-01-01T00:00:00", "2013-01-01T09:00:00")).toBe("hour");
    expect(unit("2013-01-01T00:00:00", "2013-05-01T09:00:00")).toBe("day");
    expect(suggest("t", [column("day", "date")], [["2013-01-01"]])?.title).toBe("rows by day");
    expect(unit("2001-01-01T00:00:00", "2013-05-01T09:00:00")).toBe("month");
  });
  it("counts by a category where there is no time", () => {
    const rows = Array.from({ length: 40 }, (_, at) => [`id${at}`, at % 3 ? "card" : "cash"]);
    const found = suggest("t", [column("id", "string"), column("payment", "string")], rows);
    expect(found?.title).toBe("rows by payment");
    expect(found?.sql).toContain("GROUP BY 1\nORDER BY 2 DESC");
  });
  it("is none where nothing suggests itself", () =>
    expect(suggest("t", [column("x", "float64")], [[1], [2]])).toBeUndefined());
});
