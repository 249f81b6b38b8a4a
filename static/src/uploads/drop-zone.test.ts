import { describe, expect, it } from "vitest";
import { adviceFor, csvsOf, dataOf } from "./accept";

describe("dropped files", () => {
  it("are accepted if they may be CSVs", () => {
    const file = (name: string, type = "") => new File([""], name, { type });
    const names = csvsOf([
      file("a.csv"),
      file("b.CSV.gz"),
      file("c.png"),
      file("d.x", "text/csv"),
      file("e.csv.zst"),
      file("f"),
      file("g.tsv"),
    ]);
    expect(names.map(({ name }) => name)).toEqual(["a.csv", "b.CSV.gz", "d.x", "e.csv.zst", "f", "g.tsv"]);
  });
});

it("other files are refused, with advice", () => {
  expect(adviceFor("Q1.xlsx")).toContain("save each sheet as “CSV UTF-8”");
  expect(adviceFor("all.7z")).toContain("Extract it");
  expect(adviceFor("a.png")).toContain(".csv");
});

it("a readme or licence next to data is not treated as a CSV", () => {
  const named = (...names: string[]) => {
    const { csvs, documents } = dataOf(names.map((name) => new File([""], name)));
    return [csvs.map(({ name }) => name), documents.map(({ name }) => name)];
  };
  expect(named("berlin.csv", "README.txt", "stores-LICENSE", "stops.txt")).toEqual([
    ["berlin.csv", "stops.txt"],
    ["README.txt", "stores-LICENSE"],
  ]);
  expect(named("licenses.txt", "license.csv")).toEqual([["licenses.txt", "license.csv"], []]);
  expect(named("readme.txt")).toEqual([["readme.txt"], []]);
});
