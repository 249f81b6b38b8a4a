import { describe, expect, it } from "vitest";
import { fileOf, partitionText, partsOf } from "./lineage";
import { suggest } from "./suggest";

const columns = ["day", "vendor", "x"].map((name) => ({ name, type: "string", nullable: true }));

describe("the file that a row is in", () => {
  it("has the row's values in its path", () => {
    const sibling = "day=2013-01-01/vendor=a";
    expect(fileOf("trips", sibling, columns, ["2013-05-05", "b c", 1])).toBe(
      "trips/day=2013-05-05/vendor=b c/part-00000.parquet",
    );
  });
  it("is the only one of a table without partitions", () =>
    expect(fileOf("trips", "", columns, ["a", "b", 1])).toBe("trips/part-00000.parquet"));
  it("has values escaped as the service writes them", () => {
    const of = (value: string | null) => fileOf("t", "vendor=a", columns, ["", value, 1]);
    expect(of("a/b:c=d%")).toBe("t/vendor=a%2Fb%3Ac%3Dd%25/part-00000.parquet");
    expect(of("..")).toBe("t/vendor=%2E%2E/part-00000.parquet");
    expect(of("é")).toBe("t/vendor=é/part-00000.parquet");
    expect(of("")).toBe("t/vendor=/part-00000.parquet");
    expect(of(null)).toBe("t/vendor=__HIVE_DEFAULT_PARTITION__/part-00000.parquet");
    expect(of("__HIVE_DEFAULT_PARTITION__")).toBe("t/vendor=%5F_HIVE_DEFAULT_PARTITION__/part-00000.parquet");
    expect(of("\u202e")).toBe("t/vendor=%E2%80%AE/part-00000.parquet");
  });
  it("is not known where a partition column isn't", () =>
    expect(fileOf("t", "hidden=1", columns, ["", "", 1])).toBeUndefined());
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
