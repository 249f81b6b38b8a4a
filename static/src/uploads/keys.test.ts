import { describe, expect, it } from "vitest";
import { chosenFiles, FILES_MAX, skippedMessage, walked } from "./files";
import { folderOf, joinKey, keyProblem, nameOf, pipelineOf, strayOf } from "./keys";
import { isSource } from "./source-names";

describe("keys", () => {
  it("are refused as the service refuses them", () => {
    for (const bad of [
      "",
      "/a",
      "a/",
      "a//b",
      "a/../b",
      "..",
      "./a",
      "a\\b",
      "a\u0000b",
      "a\nb",
      "a\u202eb",
      "k".repeat(1_025),
    ])
      expect(keyProblem(bad), JSON.stringify(bad)).toBeDefined();
    for (const good of ["pipelines/x/a b+c%.csv", "Ümlaut/ñ.csv", "<script>.csv", "k".repeat(1_024)])
      expect(keyProblem(good), good).toBeUndefined();
  });

  it("are limited in bytes", () => {
    expect(keyProblem("ü".repeat(513))).toContain("1,024 bytes");
  });

  it("are a folder and the path within the dropped folder", () => {
    expect(joinKey("", "a.csv")).toBe("a.csv");
    expect(joinKey("pipelines/x", "2024/a.csv")).toBe("pipelines/x/2024/a.csv");
    expect(joinKey("pipelines/x/", "/a.csv")).toBe("pipelines/x/a.csv");
    expect(joinKey("x/", "u\u0308.csv")).toBe("x/ü.csv");
  });

  it("are split into name, folder and pipeline", () => {
    expect([nameOf("a/b/c.csv"), nameOf("a/b/"), folderOf("a/b/c.csv"), folderOf("a/b/"), folderOf("c")]).toEqual([
      "c.csv",
      "b",
      "a/b/",
      "a/",
      "",
    ]);
    expect([
      pipelineOf("pipelines/x/a.csv"),
      pipelineOf("pipelines/x/"),
      pipelineOf("pipelines/X/a"),
      pipelineOf("up/a"),
    ]).toEqual(["x", undefined, undefined, undefined]);
    const names = ["a.csv", "a.CSV.gz", "a.csv.zst", "a.tsv", "report", "a.csv.bak", "a.pdf"];
    expect(names.filter(isSource)).toEqual(names.slice(0, 5));
  });
});

describe("keys below pipelines/ belong to a pipeline", () => {
  const slugs = new Set(["orders"]);
  it.each([
    [["pipelines/orders/a.csv", "elsewhere/a.csv"], undefined],
    [["pipelines/orders/a.csv", "pipelines/tree/a.csv"], "tree"],
    [["pipelines/Tree one/2024/a.csv"], "Tree one"],
    [["pipelines/a.csv"], ""],
    [["pipelines/tree/a.csv", "pipelines/tree/pipeline.json"], undefined],
    [["pipelines/tree/a.csv", "pipelines/tree/old/pipeline.json"], "tree"],
    [["pipelines/Tree/pipeline.json"], "Tree"],
  ])("%j", (keys, folder) => {
    expect(strayOf(keys, slugs)).toBe(folder);
  });
});

describe("files of a folder", () => {
  it("keep their paths; system files are left out", () => {
    const made = (path: string) =>
      Object.defineProperty(new File([""], path.split("/").at(-1) ?? ""), "webkitRelativePath", { value: path });
    const { found } = chosenFiles(["d/a.csv", "d/.DS_Store", "d/.git/x", "d/sub/b.csv", "d/Thumbs.db"].map(made));
    expect(found.map(({ path }) => path)).toEqual(["d/a.csv", "d/sub/b.csv"]);
  });

  it("are limited in number, and the rest is counted", () => {
    const name = Object.defineProperty(new File([""], "a.csv"), "webkitRelativePath", { value: "" });
    const many = Array.from({ length: FILES_MAX + 3 }, () => name);
    expect(skippedMessage(chosenFiles(many.slice(3)))).toBeUndefined();
    expect(chosenFiles(many).left).toBe(3);
    expect(skippedMessage(chosenFiles(many))).toContain("skipped 3");
  });

  it("may exceed the argument limit of one call", async () => {
    const entry = {
      name: "a.csv",
      fullPath: "/d/a.csv",
      isFile: true,
      file: (on: (file: File) => void) => on(new File([""], "a.csv")),
    };
    const pages = [Array.from({ length: 150_000 }, () => entry), []];
    const createReader = () => ({ readEntries: (on: (some: unknown[]) => void) => on(pages.shift() ?? []) });
    const folder = { name: "d", fullPath: "/d", isFile: false, createReader };
    const { found, left } = await walked([folder] as unknown as FileSystemEntry[]);
    expect([found.length, left]).toEqual([FILES_MAX, 100_000]);
  });
});
