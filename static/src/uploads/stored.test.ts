import { expect, it } from "vitest";
import type { LakeFile } from "../api/types";
import { areEqual, resolved, type Choice, type Match } from "./stored";

const file = (name: string, size = 3) => new File(["x".repeat(size)], name);
const object = (key: string): LakeFile => ({ key, size: 1, modified: "2026-01-01T00:00:00Z", etag: null });
const match = (one: File, name: string, keys: string[], other?: File): Match => ({
  file: one,
  kind: "version",
  targets: [{ name, stored: keys.map(object), ...(other ? { other } : {}) }],
});
const of = (files: File[], matches: Match[], choice: Choice) => {
  const { files: left, places, deleted } = resolved(files, matches, () => choice, 10);
  return { left: left.map(({ name }) => name), places: [...places].map(([{ name }, key]) => [name, key]), deleted };
};

it("a file that replaces a stored one is stored under its key, or the stored one is deleted", () => {
  const next = file("2024-03 v2.csv");
  expect(of([next], [match(next, "2024-03.csv", ["p/2024-03.csv"])], 0)).toEqual({
    left: [next.name],
    places: [[next.name, "p/2024-03.csv"]],
    deleted: [],
  });
  for (const keys of [["p/2024-03.csv.gz"], ["p/2024-03-part-001.csv", "p/2024-03-part-002.csv"]]) {
    const name = keys.length > 1 ? "2024-03.csv" : "2024-03.csv.gz";
    expect(of([next], [match(next, name, keys)], 0)).toEqual({ left: [next.name], places: [], deleted: keys });
  }
  const large = file("2024-03 v3.csv", 11);
  expect(of([large], [match(large, "2024-03.csv", ["p/2024-03.csv"])], 0).deleted).toEqual(["p/2024-03.csv"]);
});

it("a file is added, left out, or sent without the other new one", () => {
  const [one, two] = [file("2024-03.csv"), file("2024-03 v2.csv")];
  const alike = match(two, one.name, [], one);
  expect(of([one, two], [alike], "add")).toEqual({ left: [one.name, two.name], places: [], deleted: [] });
  expect(of([one, two], [alike], "skip").left).toEqual([one.name]);
  expect(of([one, two], [alike], 0).left).toEqual([two.name]);
});

it("two files are equal if all their bytes are, also those after the last whole word", () => {
  const bytes = (text: string) => new TextEncoder().encode(text).buffer;
  expect(areEqual(bytes("id\n1\n2"), bytes("id\n1\n2"))).toBe(true);
  expect(areEqual(bytes(""), bytes(""))).toBe(true);
  for (const other of ["id\n1\n3", "id\n2\n2", "id\n1\n2\n", "id\n1\n"])
    expect(areEqual(bytes("id\n1\n2"), bytes(other))).toBe(false);
});
