import { describe, expect, it } from "vitest";
import { axisWritten, familyOf, instant, numeric, written } from "./values";

describe("formats", () => {
  it.each([
    [1234.5678, "number", "float64", "1,234.568"],
    [1234.5678, "integer", "float64", "1,235"],
    [1234.5, "decimal2", "float64", "1,234.50"],
    [1234567, "compact", "int64", "1.2M"],
    [0.123, "percent", "float64", "12%"],
    [0.1234, "percent1", "float64", "12.3%"],
    ["0.1250", "percentage", "decimal(9,4)", "12.5%"],
    [0.07, "percentage", "float64", "7%"],
    ["12.50", "usd", "decimal(10,2)", "$12.50"],
    ["1234.50", "eur0", "decimal(10,2)", "€1,235"],
    [-3, "gbp", "int32", "-£3.00"],
    [1536, "bytes", "int64", "1.5 KiB"],
    [-1536, "bytes", "int64", "−1.5 KiB"],
    [3720, "duration_s", "int64", "1 h 2 min"],
    [1200, "duration_ms", "int64", "1.2 s"],
    ["2013-07-01", "date", "date", "Jul 1, 2013"],
    ["2013-07-01T00:00:00", "month", "timestamp", "Jul 2013"],
    ["2013-07-01T00:00:00", "quarter", "timestamp", "Q3 2013"],
    ["2013-07-01T23:30:00", "year", "timestamp", "2013"],
    [2013, "year", "int32", "2013"],
    [2013, "text", "int32", "2013"],
    ["03:04:05", "time", "time", "3:04:05 AM"],
    ["9007199254740993", "integer", "int64", "9,007,199,254,740,993"],
  ])("%s as %s of %s is %s", (value, format, type, expected) =>
    expect(written(value, format, type).replaceAll("\u202f", " ")).toBe(expected),
  );

  it("default to the format of the column type", () => {
    expect(written(12345, undefined, "int64")).toBe("12,345");
    expect(written("2013-07-01", undefined, "date")).toBe("Jul 1, 2013");
    expect(written("a", undefined, "string")).toBe("a");
    expect(written([1, 2], undefined, "int32[]")).toBe("[1,2]");
  });

  it("that don't fit leave the value unchanged", () => {
    expect(written("n/a", "usd", "string")).toBe("n/a");
    expect(written("Infinity", "number", "float64")).toBe("Infinity");
    expect(written("someday", "date", "date")).toBe("someday");
    expect(written(null, "usd", "int64")).toBe("");
  });

  it("are short on axes", () => {
    expect(axisWritten(1_500_000)).toBe("1.5M");
    expect(axisWritten(9_999)).toBe("9,999");
    expect(axisWritten(1_500_000, "usd0")).toBe("$1.5M");
    expect(axisWritten(0.25, "percent1")).toBe("25%");
  });
});

it("times without a zone don't depend on the reader's zone", () => {
  expect(instant("2013-07-01T03:04:05")).toBe(Date.UTC(2013, 6, 1, 3, 4, 5));
  expect(instant("2013-07-01T03:04:05+02:00")).toBe(Date.UTC(2013, 6, 1, 1, 4, 5));
  expect(instant("2013-07-01")).toBe(Date.UTC(2013, 6, 1));
  expect(instant("never")).toBeNull();
});

it("numbers are accepted as number or text", () => {
  expect(numeric("12.50")).toBe(12.5);
  expect(numeric("Infinity")).toBeNull();
  expect(numeric("")).toBeNull();
  expect(numeric(true)).toBeNull();
});

it("types are grouped in families", () => {
  expect(["int64", "decimal(10,2)", "HUGEINT", "float64"].map(familyOf)).toEqual(Array(4).fill("number"));
  expect(["date", "timestamptz", "TIMESTAMP WITH TIME ZONE", "time"].map(familyOf)).toEqual(Array(4).fill("time"));
  expect(["string", "int32[]", "DATE[]", "interval", "struct(a int32)"].map(familyOf)).toEqual(Array(5).fill("other"));
});
