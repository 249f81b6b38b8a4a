import { describe, expect, it } from "vitest";
import { pathAt, pointerRange } from "./tree";

const marked = (text: string, pointer: string, language: "json" | "yaml") => {
  const { from, to } = pointerRange(text, pointer, language);
  return text.slice(from, to);
};

describe("JSON Pointer lookup", () => {
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
  ])("%s marks the node, or its nearest existing ancestor", (pointer, inJson, inYaml) => {
    expect(marked(json, pointer, "json")).toBe(inJson);
    expect(marked(yaml, pointer, "yaml")).toBe(inYaml);
  });
  it("marks only the first line of a node", () => {
    expect(marked(json, "/a/0", "json")).toBe('{ "x/y": 1,');
    expect(marked(yaml, "/b/c", "yaml")).toBe("|");
  });
  it("works in incomplete documents", () => {
    expect(marked('{"a": {"b": [1, {"c": 2', "/a/b/1/c", "json")).toBe("2");
    expect(marked("", "/a", "json")).toBe("");
  });
});

describe("path at an offset", () => {
  it.each([
    ['{"a": [1, {"b|": 2}]}', ["a", 1, "b"]],
    ['{"a": [1, {"b": |2}]}', ["a", 1, "b"]],
    ['{"a": [1, {"b": 2|}]}', ["a", 1, "b"]],
    ['{"a": [1|]}', ["a", 0]],
  ])("%s", (text, path) => {
    expect(pathAt(text.replace("|", ""), text.indexOf("|"))).toEqual(path);
  });
  it("works in YAML", () => {
    const text = "panels:\n  - id: x\n    y: [a, b|]\n";
    expect(pathAt(text.replace("|", ""), text.indexOf("|"), "yaml")).toEqual(["panels", 0, "y", 1]);
  });
});
