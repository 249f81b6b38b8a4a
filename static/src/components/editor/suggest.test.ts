import { describe, expect, it } from "vitest";
import { suggest } from "./suggest";

const schema = {
  type: "object",
  required: ["version", "panels"],
  properties: {
    version: { const: 1, description: "The version." },
    title: { type: "string", maxLength: 200, default: "" },
    open: { type: "boolean", default: true },
    panels: { type: "array", items: { $ref: "#/$defs/panel" } },
    names: { type: "array", items: { type: "string", examples: ["one", "two"] } },
    extra: { type: "object", additionalProperties: { type: "string", enum: ["x", "y"] } },
    from: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
  },
  $defs: {
    panel: {
      oneOf: [{ $ref: "#/$defs/line" }, { $ref: "#/$defs/pie" }],
    },
    line: {
      type: "object",
      description: "A line.",
      required: ["type", "id"],
      properties: { type: { const: "line" }, id: { type: "string" }, x: { type: "string" } },
    },
    pie: {
      type: "object",
      required: ["type", "id"],
      properties: { type: { const: "pie" }, id: { type: "string" }, donut: { type: "boolean" } },
    },
  },
};

function at(marked: string, language: "json" | "yaml", offers?: () => string[]) {
  const offset = marked.indexOf("|");
  return suggest(marked.replace("|", ""), offset, language, schema, { offers });
}
const labels = (marked: string, language: "json" | "yaml") => at(marked, language)?.options.map(({ label }) => label);
const inserted = (marked: string, label: string, language: "json" | "yaml") =>
  at(marked, language)?.options.find((one) => one.label === label)?.insert;

describe("JSON key completions", () => {
  it("are the missing keys, with required ones marked", () => {
    expect(labels('{ "title": "x", | }', "json")).toEqual(["version", "open", "panels", "names", "extra", "from"]);
    const version = at("{ | }", "json")?.options[0];
    expect(version).toMatchObject({ label: "version", kind: "required", detail: "1", info: "The version." });
  });
  it("are offered within quotes, and after a value without a comma", () => {
    expect(at('{ "ti|" }', "json")).toMatchObject({ from: 3, quoted: true });
    expect(labels('{ "version": 1 | }', "json")).toContain("title");
    expect(labels('{ "panels": [] | }', "json")).toContain("title");
  });
  it("insert a value of the right type", () => {
    expect(inserted("{ | }", "version", "json")).toBe('"version": 1');
    expect(inserted("{ | }", "title", "json")).toBe('"title": "${}"');
    expect(inserted("{ | }", "open", "json")).toBe('"open": ${false}');
    expect(inserted("{ | }", "names", "json")).toBe('"names": ["${}"]');
    expect(inserted('{ "|": 2 }', "version", "json")).toBe('"version"');
  });
  it("follow the alternative selected by `type`", () => {
    expect(labels('{ "panels": [ { "type": "pie", | } ] }', "json")).toEqual(["id", "donut"]);
    expect(labels('{ "panels": [ { | } ] }', "json")).toEqual(["type", "id", "x", "donut"]);
  });
});

describe("JSON value completions", () => {
  it("are the values in the schema", () => {
    expect(labels('{ "open": | }', "json")).toEqual(["true", "false"]);
    expect(labels('{ "extra": { "any": "|" } }', "json")).toEqual(["x", "y"]);
    expect(labels('{ "names": ["a", "|"] }', "json")).toEqual(["one", "two"]);
    expect(labels('{ "from": | }', "json")).toContain("null");
  });
  it("of a discriminator field list all alternatives", () => {
    expect(labels('{ "panels": [ { "type": "pie|" } ] }', "json")).toEqual(["line", "pie"]);
  });
  it("of a new item insert its required fields", () => {
    const found = at('{ "panels": [ | ] }', "json")?.options;
    expect(found?.map(({ label }) => label)).toEqual(["type: line", "type: pie"]);
    expect(found?.[0]?.insert).toBe('{ "type": "line", "id": "${}" }');
  });
  it("can be supplied by the application", () => {
    const found = at('{ "title": "|" }', "json", () => ["mine"])?.options;
    expect(found?.map(({ label }) => label)).toContain("mine");
  });
});

describe("YAML completions", () => {
  it("offer keys on an empty line", () => {
    expect(labels("title: x\n|", "yaml")).toEqual(["version", "open", "panels", "names", "extra", "from"]);
    expect(labels("panels:\n  - type: pie\n    |\nversion: 1\n", "yaml")).toEqual(["id", "donut"]);
    expect(labels("panels:\n  - { type: line, | }\n", "yaml")).toEqual(["id", "x"]);
    expect(inserted("title: x\n|", "names", "yaml")).toBe("names:\n  - ${}");
    expect(inserted("|", "panels", "yaml")).toBe("panels:\n  - type: line\n    id: ${}");
  });
  it("offer values after a colon, and items after a dash", () => {
    expect(labels("open: |", "yaml")).toEqual(["true", "false"]);
    expect(labels("panels:\n  - type: li|\n    id: a\n", "yaml")).toEqual(["line", "pie"]);
    expect(labels("names:\n  - |\n", "yaml")).toEqual(["one", "two"]);
    expect(labels("names: [one, t|]\n", "yaml")).toEqual(["one", "two"]);
    expect(labels("panels:\n  - |\n", "yaml")).toContain("type: line");
  });
  it("offer nothing in comments and block scalars", () => {
    expect(at("# |", "yaml")).toBeUndefined();
    expect(at("title: >\n  so|me\n", "yaml")).toBeUndefined();
  });
});
