import { describe, expect, it } from "vitest";
import { partitionOf, partitionText, partsOf } from "./lineage";

const columns = ["day", "vendor", "x"].map((name) => ({ name, type: "string", nullable: true }));

describe("partition of a row", () => {
  it("has the row's values", () => {
    const sibling = "day=2013-01-01/vendor=a";
    expect(partitionOf(sibling, columns, ["2013-05-05", "b c", 1])).toBe("day=2013-05-05/vendor=b c");
  });
  it("is the only one in a table without partitions", () => expect(partitionOf("", columns, ["a", "b", 1])).toBe(""));
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
  it("is unknown if a partition column is hidden", () =>
    expect(partitionOf("hidden=1", columns, ["", "", 1])).toBeUndefined());
});

describe("partition text", () => {
  it("has names and values", () => {
    expect(partsOf("a%3Db=c%2Fd/e=__HIVE_DEFAULT_PARTITION__")).toEqual([
      { name: "a=b", value: "c/d" },
      { name: "e", value: null },
    ]);
    expect(partitionText("day=2013-01-01/vendor=__HIVE_DEFAULT_PARTITION__")).toBe("day = 2013-01-01, vendor = null");
    expect(partitionText("")).toBe("");
  });
  it("with an invalid escape is unchanged", () => expect(partitionText("a=%zz")).toBe("a = %zz"));
});
