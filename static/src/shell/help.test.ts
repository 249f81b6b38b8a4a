import { describe, expect, it } from "vitest";
import { listed, viewAt } from "./help";

it.each([
  ["/", "pipelines"],
  ["/lake", "lake"],
  ["/new", "new"],
  ["/settings", "settings"],
  ["/p/flights", "overview"],
  ["/p/flights/", "overview"],
  ["/p/flights/data/weather", "data"],
  ["/p/query/jobs/0192", "jobs"],
])("the view at %s is %s", (path, view) => expect(viewAt(path)).toBe(view));

describe("keyboard help", () => {
  it("lists each shortcut once, in the group and with the text of its last registration", () => {
    const found = listed([
      { keys: "?", does: "Help", scope: "everywhere" },
      { keys: "/", does: "Search pipelines", scope: "everywhere" },
      { keys: "R", does: "Run", scope: "pipeline" },
      { keys: "/", does: "Find a table" },
    ]);
    expect(found.map(({ title }) => title)).toEqual(["In this view", "In this pipeline", "Everywhere"]);
    expect(found[0]?.shortcuts.map(({ does }) => does)).toEqual(["Find a table"]);
    expect(found[2]?.shortcuts.map(({ keys }) => keys)).not.toContain("/");
  });
});
