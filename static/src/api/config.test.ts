import { expect, it } from "vitest";
import { withTitle } from "./config";

it("a changed title leaves the rest of a config as it is written", () => {
  const rest = `"mappings": [ { "table": "title", "csv": {"title": "x"}, "n": 1.10 } ] }`;
  expect(withTitle(`{ "version": 1, "title": "Old \\" one", ${rest}`, 'New "one"')).toBe(
    `{ "version": 1, "title": "New \\"one\\"", ${rest}`,
  );
  expect(withTitle(`{ "version": 1, ${rest}`, "New")).toBe(`{ "version": 1,\n  "title": "New", ${rest}`);
  expect(JSON.parse(withTitle(`{ ${rest}`, "New"))).toMatchObject({ title: "New", mappings: [{ table: "title" }] });
});
