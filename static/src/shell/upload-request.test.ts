import { expect, it } from "vitest";
import { groupsOf, stepText } from "./upload-request";

const named = (name: string) => new File(["a\n1\n"], name);

it("files are grouped by table in their order, and those without a table come last", () => {
  const tables: Record<string, string> = { "s-1.csv": "sales", "r-1.csv": "returns", "s-2.csv": "sales" };
  const files = ["x.csv", "s-1.csv", "r-1.csv", "y.csv", "s-2.csv"].map(named);
  const groups = groupsOf(files, ({ name }) => tables[name]);
  expect(groups.map(({ table, files }) => [table, ...files.map(({ name }) => name)])).toEqual([
    ["sales", "s-1.csv", "s-2.csv"],
    ["returns", "r-1.csv"],
    [undefined, "x.csv", "y.csv"],
  ]);
  expect(groupsOf(files, () => undefined)).toEqual([{ table: undefined, files }]);
});

it("a step names its files, the next ones, and what Skip and Cancel leave out", () => {
  const groups = [
    { table: "sales", files: ["a", "b", "c"].map(named) },
    { table: "returns", files: [named("d")] },
    { table: undefined, files: [named("e")] },
  ];
  const text = (at: number, table?: string, toPreview: File[] = []) => stepText({ groups, at, toPreview }, table);
  const left = "Skip leaves out this file, Cancel all that are left.";
  expect(text(0, "sales")).toBe(
    "Step 1 of 3: 3 files for sales. Next: 1 file for returns. Skip leaves out these files, Cancel all that are left.",
  );
  expect(text(1)).toBe(`Step 2 of 3: 1 file. Next: 1 file without a matching table. ${left}`);
  expect(text(2)).toBe("Step 3 of 3: 1 file.");
  expect(text(2, "sales", [named("d")])).toBe(`Step 3 of 3: 1 file for sales. Next: the preview of 1 file. ${left}`);
});
