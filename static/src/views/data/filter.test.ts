import { describe, expect, it } from "vitest";
import { choicesFor, fieldOf, filtersOf, parseFilter, printFilter, refusalOf, type Choice } from "../../format/filter";
import { condition } from "../../format/condition";
import { parseSort, printSort, statement } from "./statement";

describe("URL filter", () => {
  it.each([
    ["fare:ge:10", { column: "fare", operator: "ge", value: "10" }],
    ["a:eq:eq:5", { column: "a:eq", operator: "eq", value: "5" }],
    ["a:contains:x:y", { column: "a", operator: "contains", value: "x:y" }],
    ["fare:is_null", { column: "fare", operator: "is_null", value: "" }],
  ])("is parsed like in the service: %s", (text, filter) => {
    const found = parseFilter(text, ["fare", "a", "a:eq"]);
    expect(found).toEqual(filter);
    expect(found && printFilter(found)).toBe(text);
  });
  it("with an unknown column or operator is left to the service", () => {
    for (const text of ["fares:eq:1", "fare:like:1", "fare", ""]) expect(parseFilter(text, ["fare"])).toBeUndefined();
  });
});

it("an error of the service is assigned to its column", () => {
  const message = "`filter` on `day`: found `2024-02-31`, expected a date such as `2013-01-31`";
  expect(refusalOf(message, ["da", "day", "day`"])).toEqual({
    column: "day",
    why: "found `2024-02-31`, expected a date such as `2013-01-31`",
  });
  for (const other of ["`filter` on `days`: found `x`", "`sort` names no column `day`", ""])
    expect(refusalOf(other, ["day"])).toBeUndefined();
});

describe("filter field", () => {
  it.each<[string, Choice, string, string[]]>([
    ["int64", "eq", " 5 ", ["c:eq:5"]],
    ["int64", "eq", "", []],
    ["int64", "between", "1 .. 9", ["c:ge:1", "c:le:9"]],
    ["int64", "between", "1..", ["c:ge:1"]],
    ["int64", "between", "..9", ["c:le:9"]],
    ["string", "in", "a, b", ['c:in:["a","b"]']],
    ["string", "contains", " x ", ["c:contains: x "]],
    ["string", "is_null", "", ["c:is_null"]],
    ["timestamp", "starts_with", "2013-0", ["c:starts_with:2013-0"]],
    ["timestamptz", "ge", "2013-01-31T05:00:00Z", ["c:ge:2013-01-31T05:00:00Z"]],
    ["decimal(10,2)", "lt", "12.50", ["c:lt:12.50"]],
    ["int64", "eq", "1,234", ["c:eq:1234"]],
    ["decimal(9,4)", "ge", "12.5 %", ["c:ge:0.125"]],
    ["float64", "between", "-7% .. 1,250%", ["c:ge:-0.07", "c:le:12.5"]],
    ["decimal(9,2)", "ge", "$1,234.50", ["c:ge:1234.50"]],
    ["decimal(9,2)", "le", "($95.00)", ["c:le:-95.00"]],
    ["int64", "outside", "1 .. 9", ['c:outside:["1","9"]']],
    ["int64", "outside", "1..", ["c:lt:1"]],
    ["int64", "outside", "..9", ["c:gt:9"]],
    ["timestamp", "outside", "2024-03-01 .. 2024-05-31", ['c:outside:["2024-03-01","2024-05-31T23:59:59.999999"]']],
    ["date", "between", "01.03.2024 - 31.05.2024", ["c:ge:2024-03-01", "c:le:2024-05-31"]],
    ["date", "between", "3/1/2024 \u2013 5/31/2024", ["c:ge:2024-03-01", "c:le:2024-05-31"]],
    ["timestamp", "between", "2024-03-01 .. 2024-05-31", ["c:ge:2024-03-01", "c:le:2024-05-31T23:59:59.999999"]],
    ["timestamp", "gt", "2024-05-31", ["c:gt:2024-05-31T23:59:59.999999"]],
  ])("of type %s with %s and %s gives %j", (type, choice, text, filters) =>
    expect(filtersOf("c", type, choice, text).map(printFilter)).toEqual(filters),
  );
  it("shows the expected form for a value of the wrong type", () => {
    expect(() => filtersOf("c", "int64", "eq", "1.5")).toThrow("found 1.5, expected a whole number");
    expect(() => filtersOf("c", "date", "ge", "31.02.2013")).toThrow("a date like");
    expect(() => filtersOf("c", "date", "between", "2024-03-01 .. soon")).toThrow("found soon, expected a date like");
    expect(() => filtersOf("c", "int64", "between", "9 .. 1")).toThrow("found 1, expected 9 or more");
    expect(() => filtersOf("c", "decimal(4,2)", "eq", "1,5")).toThrow("a number like");
  });
  it("shows the current filter", () => {
    for (const [choice, text] of [
      ["eq", "5"],
      ["between", "1 .. 9"],
      ["outside", "1 .. 9"],
      ["in", "1, 2"],
      ["is_not_null", ""],
    ] as const) {
      expect(fieldOf(filtersOf("c", "int64", choice, text))).toEqual({ choice, text, more: false });
    }
    expect(fieldOf([])).toBeUndefined();
    for (const [choice, text] of [
      ["eq", "7%"],
      ["between", "5% .. 12.5%"],
      ["in", "1%, 2%"],
    ] as const)
      expect(fieldOf(filtersOf("c", "decimal(9,4)", choice, text), "percent")?.text).toBe(text);
  });
  it("of a column of percentages takes plain numbers as such", () => {
    const of = (choice: Choice, text: string) =>
      filtersOf("c", "decimal(9,4)", choice, text, "percent").map(printFilter);
    expect(of("gt", "10")).toEqual(["c:gt:0.1"]);
    expect(of("between", "5 .. 12.5%")).toEqual(["c:ge:0.05", "c:le:0.125"]);
    expect(() => of("gt", "ten")).toThrow("a number like");
  });
  it("shows a day whose times a filter includes as the day", () => {
    const range = filtersOf("c", "timestamp", "between", "2024-03-01 .. 2024-05-31");
    expect(fieldOf(range)?.text).toBe("2024-03-01 .. 2024-05-31");
    const outside = filtersOf("c", "timestamp", "outside", "2024-03-01 .. 2024-05-31");
    expect(fieldOf(outside)?.text).toBe("2024-03-01 .. 2024-05-31");
  });
  it("starts with the usual comparison of its type", () => {
    expect(["string", "int8", "boolean", "timestamp", "json"].map((type) => choicesFor(type)[0])).toEqual([
      "contains",
      "eq",
      "eq",
      "starts_with",
      "contains",
    ]);
  });
});

describe("URL sort order", () => {
  const columns = ["a", "a,b", "-a", "b"];
  it.each(["a", "-a", "a,b", "--a", "b,-b", "a,b,b"])("is parsed like in the service: %s", (text) => {
    const found = parseSort(text, columns);
    expect(found).toBeDefined();
    if (text !== "b,-b") expect(printSort(found ?? [])).toBe(text);
  });
  it("prefers the longest name, and a name that starts with a minus", () => {
    expect(parseSort("a,b", columns)).toEqual([{ column: "a,b", descending: false }]);
    expect(parseSort("-a", columns)).toEqual([{ column: "-a", descending: false }]);
    expect(parseSort("-b", columns)).toEqual([{ column: "b", descending: true }]);
  });
  it("with an unknown column is left to the service", () => expect(parseSort("c", columns)).toBeUndefined());
});

describe("SQL of the displayed rows", () => {
  it("has the same columns, filters and order", () => {
    const sql = statement(
      {
        table: "trips",
        columns: [
          { name: "fare", type: "decimal(10,2)" },
          { name: 'odd "name', type: "string" },
        ],
        filters: [
          { column: "fare", operator: "ge", value: "12.50" },
          { column: 'odd "name', operator: "contains", value: "O'Hare" },
        ],
        sort: [{ column: "fare", descending: true }],
      },
      100,
    );
    expect(sql).toBe(
      "SELECT *\nFROM trips\nWHERE fare >= 12.50\n  AND contains(\"odd \"\"name\", 'O''Hare')\n" +
        "ORDER BY fare DESC NULLS LAST\nLIMIT 100",
    );
  });
  it("escapes values", () => {
    const evil = "1); DROP TABLE x; --";
    expect(condition({ column: "n", operator: "eq", value: evil }, "int64")).toBe(`n = CAST('${evil}' AS BIGINT)`);
    expect(condition({ column: "select", operator: "eq", value: "'" }, "string")).toBe(`"select" = ''''`);
  });
  it("has the semantics of the service's filters", () => {
    expect(condition({ column: "a", operator: "ne", value: "1" }, "int8")).toBe("a IS DISTINCT FROM 1");
    expect(condition({ column: "a", operator: "not_in", value: '["1","2"]' }, "int8")).toBe(
      "(a IS NULL OR a NOT IN (1, 2))",
    );
    expect(condition({ column: "a", operator: "in", value: "" }, "int8")).toBe("false");
    expect(condition({ column: "at", operator: "lt", value: "2013-01-01" }, "timestamptz")).toBe(
      `"at" < CAST('2013-01-01' AS TIMESTAMPTZ)`,
    );
    expect(condition({ column: "j", operator: "eq", value: "{}" }, "json")).toBe("CAST(j AS VARCHAR) = '{}'");
  });
});
