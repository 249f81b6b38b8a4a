import { expect, it } from "vitest";
import { byTitle, titleOfText } from "./titles";

it.each([
  ["version: 2\ntitle: Shops\npanels: []\n", "Shops"],
  ['title: "Shops: \\"all\\"" # one line\n', 'Shops: "all"'],
  ["title: 'It''s here'\n", "It's here"],
  ["title:  Shops   # one line\r\n", "Shops"],
  ["panels:\n  - title: Bars\n", undefined],
  ["title: |\n  Two\n", undefined],
  ['{"title": "Flow"}', undefined],
  ['title: ""\n', undefined],
])("the title of %j is %j", (text, title) => expect(titleOfText(text)).toBe(title));

it("pipelines are sorted by what lists show", () => {
  const listed = [
    { slug: "a", title: "Zebra" },
    { slug: "z", title: "apples" },
    { slug: "m", title: null },
  ];
  expect(listed.sort(byTitle).map(({ slug }) => slug)).toEqual(["z", "m", "a"]);
});
