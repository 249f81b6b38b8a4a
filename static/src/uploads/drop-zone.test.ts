import { describe, expect, it } from "vitest";
import { adviceFor, csvsOf } from "./take";

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
