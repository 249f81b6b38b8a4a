import { describe, expect, it } from "vitest";
import type { Cell, ResultColumn } from "../../api/types";
import { guessChart } from "./guess";

const columns = (...types: string[]): ResultColumn[] =>
  types.map((text) => {
    const [name = "", type = ""] = text.split(":");
    return { name, type };
  });
const guess = (types: string[], rows: Cell[][]) => guessChart(columns(...types), rows);

describe("guessed chart", () => {
  it("is a line per numeric column over time", () => {
    const rows = [
      ["2013-01-01", 1, 2],
      ["2013-01-02", 3, 4],
    ];
    expect(guess(["day:date", "a:int64", "b:float64"], rows)).toEqual({
      type: "line",
      x: { field: "day" },
      y: [{ field: "a" }, { field: "b" }],
    });
  });

  it("is a line per category if a time has several rows", () => {
    const rows = [
      ["2013-01-01", "JFK", 1],
      ["2013-01-01", "LGA", 2],
      ["2013-01-02", "JFK", 3],
    ];
    expect(guess(["day:date", "origin:string", "n:int64"], rows)).toMatchObject({ type: "line", series: "origin" });
  });

  it("is a scatter plot if rows of one time can't be distinguished", () => {
    const rows = [
      ["2013-01-01", 1],
      ["2013-01-01", 2],
      ["2013-01-02", 3],
    ];
    expect(guess(["day:date", "n:int64"], rows)?.type).toBe("scatter");
  });

  it("is a bar chart for categories, horizontal if their names are long", () => {
    expect(
      guess(
        ["a:string", "n:int64"],
        [
          ["x", 1],
          ["y", 2],
        ],
      ),
    ).toEqual({
      type: "bar",
      x: { field: "a" },
      y: [{ field: "n" }],
    });
    const long = guess(
      ["a:string", "n:int64"],
      [
        ["a rather long name", 1],
        ["y", 2],
      ],
    );
    expect(long?.horizontal).toBe(true);
  });

  it("is a scatter plot for two numbers", () => {
    const rows = [
      [1.5, 2],
      [2, 4],
    ];
    expect(guess(["a:float64", "b:int64"], rows)).toMatchObject({
      type: "scatter",
      x: { field: "a" },
      y: [{ field: "b" }],
    });
  });

  it("is a bar chart for numeric identifiers", () => {
    const rows = [
      [2012, 2],
      [2013, 4],
    ];
    expect(guess(["year:int32", "n:int64"], rows)).toMatchObject({ type: "bar", x: { field: "year" } });
  });

  it("ignores empty columns", () => {
    const rows = [
      [null, "x", 1],
      [null, "y", 2],
    ];
    expect(guess(["day:date", "a:string", "n:int64"], rows)).toMatchObject({ type: "bar", x: { field: "a" } });
  });

  it.each<[string, string[], Cell[][]]>([
    ["one row", ["n:int64"], [[1]]],
    ["no rows", ["day:date", "n:int64"], []],
    [
      "words alone",
      ["a:string", "b:string"],
      [
        ["x", "y"],
        ["z", "w"],
      ],
    ],
    ["one number", ["n:int64"], [[1], [2]]],
    ["more words than bars", ["a:string", "n:int64"], Array.from({ length: 100 }, (_, at) => [`w${at}`, at])],
    [
      "nested values",
      ["a:struct(x int32)", "n:int64"],
      [
        [{ x: 1 }, 1],
        [{ x: 2 }, 2],
      ],
    ],
  ])("is none for %s", (_, types, rows) => expect(guess(types, rows)).toBeUndefined());
});
