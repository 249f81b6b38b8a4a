import { isNumeric, plain } from "../../format/values";
import { describe, expect, it } from "vitest";
import { asJson, asTabs, grouped, shown } from "./value";
import { autoWidth, gutterWidth, isWidths, WIDTH_MIN } from "./widths";

const digits = (text: string) => text.replace(/[^\d-]/g, "");

describe("numbers", () => {
  it.each([
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999999999999999",
    "12345678901234567890.12345678901234567800",
    "-0.10",
    "0.000000000000000001",
  ])("of any length keep all digits: %s", (text) => expect(digits(grouped(text))).toBe(digits(text)));

  it("are grouped by the reader's locale", () => {
    expect(grouped("1234567")).toBe((1_234_567).toLocaleString());
    expect(grouped("1234.50")).toBe((1_234.5).toLocaleString(undefined, { minimumFractionDigits: 2 }));
  });
  it("in unusual notation are unchanged", () => {
    for (const text of ["NaN", "inf", "1e+21", "0x10", ""]) expect(grouped(text)).toBe(text);
  });
  it("are recognized by column type, even if sent as text", () => {
    expect(shown("12345678901234567890", "uint64")).toEqual({
      text: grouped("12345678901234567890"),
      kind: "number",
    });
    expect(shown("12345", "string")).toEqual({ text: "12345", kind: "text" });
    for (const type of ["int8", "uint64", "decimal(10,2)", "float64", "HUGEINT"]) expect(isNumeric(type)).toBe(true);
    for (const type of ["string", "date", "interval", "timestamp", "json", "uuid", "int64[]"])
      expect(isNumeric(type)).toBe(false);
  });
  it("that are identifiers aren't grouped", () => {
    expect(shown(2013, "int16", true).text).toBe("2013");
    expect(shown(10_045, "int64").text).toBe(grouped("10045"));
  });
});

describe("values", () => {
  it("distinguish null, the text “null” and the empty string", () => {
    expect(shown(null, "string")).toEqual({ text: "null", kind: "null" });
    expect(shown("null", "string").kind).toBe("text");
    expect(shown("", "string")).toEqual({ text: "", kind: "text" });
  });
  it("with several lines are shown on one line", () => expect(shown("a\r\nb\nc\td", "string").text).toBe("a↵b↵c⇥d"));
  it("are truncated if long", () => expect(shown("x".repeat(5_000), "string").text.length).toBeLessThan(400));
  it("are compact JSON if nested", () => expect(shown({ a: [1, null] }, "json").text).toBe('{"a":[1,null]}'));
  it("of time types are shown as stored", () =>
    expect(shown("2013-01-01T05:00:00", "timestamp").text).toBe("2013-01-01T05:00:00"));
});

describe("copied text", () => {
  it("is the whole value", () => {
    expect(plain("x".repeat(5_000))).toHaveLength(5_000);
    expect(plain(null)).toBe("");
    expect(plain(false)).toBe("false");
  });
  it("of a row separates its cells", () => expect(asTabs(["a\tb", null, 1])).toBe("a b\t\t1"));
  it("of a row as JSON has a field per column, whatever its name", () => {
    expect(JSON.parse(asJson(["a", "b"], [1, null]))).toEqual({ a: 1, b: null });
    expect(asJson(["__proto__", 'q"'], ["x", 2])).toBe('{\n  "__proto__": "x",\n  "q\\"": 2\n}');
  });
});

describe("column widths", () => {
  const column = { name: "note", type: "string" };

  it("fit the header and the first values", () => {
    const narrow = autoWidth(column, 0, [["a"]], false);
    const wide = autoWidth(column, 0, [["a".repeat(30)]], false);
    expect(narrow).toBeGreaterThanOrEqual(WIDTH_MIN);
    expect(wide).toBeGreaterThan(200);
    expect(autoWidth(column, 0, [["a".repeat(3_000)]], false)).toBeLessThan(400);
    expect(autoWidth(column, 0, [["漢".repeat(15)]], false)).toBe(autoWidth(column, 0, [["a".repeat(30)]], false));
  });
  it("of row numbers fit the largest number", () =>
    expect(gutterWidth(100_000_000)).toBeGreaterThan(gutterWidth(1_000)));
  it("in invalid stored settings are ignored", () => {
    expect(isWidths({ a: 100 })).toBe(true);
    for (const wrong of [null, [], { a: -1 }, { a: "100" }, { a: 1e9 }]) expect(isWidths(wrong)).toBe(false);
  });
});
