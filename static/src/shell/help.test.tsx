import { describe, expect, it } from "vitest";
import { render } from "preact";
import { printed, useShortcuts } from "../browser/shortcuts";
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
  it("prints different keys differently", () => {
    const keys = ["r", "R", "mod+z", "mod+Z", "g d", "?"];
    expect(keys.map((one) => printed(one).join(" "))).toEqual(["R", "Shift R", "Ctrl Z", "Ctrl Shift Z", "G D", "?"]);
  });
});

it("a letter pressed with Ctrl and Shift is another shortcut than without Shift", () => {
  const done: string[] = [];
  const shortcuts = ["mod+z", "mod+Z"].map((keys) => ({ keys, does: keys, run: () => done.push(keys) }));
  const Registered = () => {
    useShortcuts(shortcuts);
    return null;
  };
  render(<Registered />, document.body);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true }));
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Z", ctrlKey: true, shiftKey: true }));
  render(null, document.body);
  expect(done).toEqual(["mod+z", "mod+Z"]);
});
