import { describe, expect, it } from "vitest";
import { merged } from "../../api/settings-merge";
import { moved } from "./merge";

const base = { workspace_name: "Lakemill", display_name: "", starred: ["a"] };

describe("concurrent settings changes", () => {
  it("to different fields are both kept", () => {
    const mine = { ...base, workspace_name: "Mine" };
    const theirs = { ...base, starred: ["a", "b"] };
    expect(merged(base, mine, theirs)).toEqual({ settings: { ...mine, starred: ["a", "b"] }, conflicts: [] });
  });
  it("to the same field are reported as conflicts", () => {
    const found = merged(base, { ...base, workspace_name: "Mine" }, { ...base, workspace_name: "Theirs" });
    expect(found).toEqual({ settings: { ...base, workspace_name: "Mine" }, conflicts: ["workspace_name"] });
  });
  it("to the same value are no conflict", () => {
    const both = { ...base, display_name: "Ada" };
    expect(merged(base, both, both)).toEqual({ settings: both, conflicts: [] });
  });
});

it("a starred pipeline moves up and down within the list", () => {
  expect(moved(["a", "b", "c"], 2, -1)).toEqual(["a", "c", "b"]);
  expect(moved(["a", "b", "c"], 0, 1)).toEqual(["b", "a", "c"]);
  expect(moved(["a", "b"], 0, -1)).toEqual(["a", "b"]);
  expect(moved(["a", "b"], 1, 1)).toEqual(["a", "b"]);
});
