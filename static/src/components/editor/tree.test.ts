import { describe, expect, it } from "vitest";
import { pathAt, pointerRange } from "./tree";

const marked = (text: string, pointer: string, language: "json" | "yaml") => {
  const { from, to } = pointerRange(text, pointer, language);
  return text.slice(from, to);
};

describe("the node of a JSON Pointer", () => {
  const json = '{\n  "a": [\n    { "x/y": 1,\n      "deep": { "z": "q" } },\n    true\n  ],\n  "b": {}\n}';
  const yaml = "a:\n  - x/y: 1\n    deep: { z: q }\n  - true\nb:\n  c: |\n    text\n";
  it.each([
    ["/a/0/x~1y", "1", "1"],
    ["/a/0/deep", '"deep"', "deep"],
    ["/a/0/deep/z", '"q"', "q"],
    ["/a/1", "true", "true"],
    ["/a", '"a"', "a"],
    ["/b/nowhere", '"b"', "b"],
    ["/a/7", '"a"', "a"],
    ["/a/0/deep/z/further", '"q"', "q"],
    ["", "{", "a"],
    ["/nowhere", "{", "a"],
  ])("%s is marked, or the nearest that is there", (pointer, inJson, inYaml) => {
    expect(marked(json, pointer, "json")).toBe(inJson);
    expect(marked(yaml, pointer, "yaml")).toBe(inYaml);
  });
  it("is marked on its first line alone", () => {
    expect(marked(json, "/a/0", "json")).toBe('{ "x/y": 1,');
    expect(marked(yaml, "/b/c", "yaml")).toBe("|");
  });
  it("is found in a text that isn't finished", () => {
    expect(marked('{"a": {"b": [1, {"c": 2', "/a/b/1/c", "json")).toBe("2");
    expect(marked("", "/a", "json")).toBe("");
  });
});

describe("the path at an offset", () => {
  it.each([
    ['{"a": [1, {"b|": 2}]}', ["a", 1, "b"]],
    ['{"a": [1, {"b": |2}]}', ["a", 1, "b"]],
    ['{"a": [1, {"b": 2|}]}', ["a", 1, "b"]],
    ['{"a": [1|]}', ["a", 0]],
  ])("%s", (text, path) => {
    expect(pathAt(text.replace("|", ""), text.indexOf("|"))).toEqual(path);
  });
  it("is told in YAML", () => {
    const text = "panels:\n  - id: x\n    y: [a, b|]\n";
    expect(pathAt(text.replace("|", ""), text.indexOf("|"), "yaml")).toEqual(["panels", 0, "y", 1]);
  });
});
