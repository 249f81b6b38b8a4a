import { expect, it } from "vitest";
import { changesBetween } from "./changes";

const text = `version: 2
title: Sales
params:
  - { name: shop, title: Shop, type: select, options: { query: shops } }
queries:
  shops: { sql: SELECT 1 }
  m: { sql: SELECT 2 }
panels:
  - { id: a, type: kpi, title: Total, query: m, width: 3 }
  - { id: b, type: line, title: By month, query: m, width: 9 }
  - { type: markdown, text: Words }
`;
const changed = (...pairs: [string, string][]) =>
  changesBetween(
    text,
    pairs.reduce((all, [from, to]) => all.replace(from, to), text),
  );

it("changes of a dashboard are in words, by the titles of panels and filters", () => {
  expect(changed()).toEqual([]);
  expect(changed(["title: Sales", "title: Shops"])).toEqual(["Renamed the dashboard to “Shops”"]);
  expect(changed(["title: By month", "title: Months"], ["width: 3", "width: 4"])).toEqual([
    "Resized the panel “Total”",
    "Renamed the panel “By month” to “Months”",
  ]);
  expect(
    changed(
      ["title: By month, query: m", "title: By shop, query: n"],
      ["SELECT 2 }", "SELECT 2 }\n  n: { sql: SELECT 5 }"],
    ),
  ).toEqual(["Added the panel “By shop”", "Removed the panel “By month”"]);
  expect(changed(["SELECT 2", "SELECT 3"])).toEqual(["Changed the panel “Total”", "Changed the panel “By month”"]);
  expect(changed(["type: line", "type: bar"], ["SELECT 1", "SELECT 4"])).toEqual([
    "Changed the panel “By month”",
    "Changed the filter “Shop”",
  ]);
  expect(changed(["  - { type: markdown, text: Words }\n", ""])).toEqual(["Removed the panel “Words”"]);
  expect(changed(["panels:\n", "panels:\n  - { id: c, type: kpi, title: New, query: m }\n"])).toEqual([
    "Added the panel “New”",
  ]);
  expect(changed(["id: a", "id: x"], ["id: b", "id: a"], ["id: x", "id: b"]).at(-1)).toBe("Moved panels");
  expect(changed(["Sales", "Sales # of all shops"])).toEqual(["Changed other parts of the YAML"]);
  expect(changed(["panels:", "panels: ["])).toEqual(["Changed the YAML, which has an error"]);
});
