import { describe, expect, it } from "vitest";
import { arranged, type PipelineCard } from "./cards";
import { lossWords } from "./delete-dialog";
import { csvsOf } from "./drop";
import { freeSlug, slugFault, slugFrom } from "./slug";

describe("slugs", () => {
  it.each(["a", "0", "daily-sales_2", "x".repeat(63)])("may be %j", (slug) => expect(slugFault(slug)).toBeUndefined());
  it.each([
    ["", "Type a slug."],
    ["-a", "It begins with a letter or a digit."],
    ["A", "“A” can't be in a slug; a-z, 0-9, _ and - can."],
    ["a b", "A space can't be in a slug; a-z, 0-9, _ and - can."],
    ["ä", "“ä” can't be in a slug; a-z, 0-9, _ and - can."],
    ["x".repeat(64), "It has 64 characters; at most 63 fit."],
  ])("may not be %j", (slug, fault) => expect(slugFault(slug)).toBe(fault));
  it.each([
    ["Daily sales (EU)", "daily-sales-eu"],
    ["Übersicht", "ubersicht"],
    ["  --  ", ""],
    ["日本", ""],
  ])("are made from the title %j", (title, slug) => expect(slugFrom(title)).toBe(slug));
  it("that are free are found", () => {
    expect(freeSlug("flights", ["orders"])).toBe("flights");
    expect(freeSlug("flights", ["flights", "flights-2"])).toBe("flights-3");
    expect(freeSlug("x".repeat(63), ["x".repeat(63)])).toHaveLength(63);
  });
});

const card = (slug: string, more: Partial<PipelineCard> = {}): PipelineCard => ({
  slug,
  title: null,
  config: "valid",
  problems: 0,
  tables: 2,
  auto_run: true,
  last_job: null,
  next_due: null,
  rows: null,
  bytes: null,
  recent: [],
  ...more,
});

const ran = (status: string, at: string) => ({
  job_id: at,
  status,
  trigger: "auto",
  enqueued_at: at,
  finished_at: at,
  error: null,
});

describe("cards", () => {
  const cards = [
    card("c", { rows: 5, last_job: ran("completed", "2026-01-03") }),
    card("a", { title: "Sales of Europe", last_job: ran("failed", "2026-01-01") }),
    card("b", { rows: 9, config: "missing" }),
  ];
  const order = (...args: Parameters<typeof arranged> extends [unknown, ...infer R] ? R : never) =>
    arranged(cards, ...args).map(({ slug }) => slug);
  it("are ordered by star, then by name", () => expect(order("", "starred", ["c"])).toEqual(["c", "a", "b"]));
  it("are ordered by last run", () => expect(order("", "last-run", [])).toEqual(["c", "a", "b"]));
  it("are ordered by rows, unknown ones last", () => expect(order("", "rows", [])).toEqual(["b", "c", "a"]));
  it("are ordered by trouble", () => expect(order("", "troubled", [])).toEqual(["a", "b", "c"]));
  it("are found by words of slug and title", () => {
    expect(order("europe sales", "name", [])).toEqual(["a"]);
    expect(order("nothing", "name", [])).toEqual([]);
  });
});

describe("what a delete loses", () => {
  it("is told with numbers", () =>
    expect(lossWords(card("a", { rows: 5 }), { files: 412, bytes: 2048, whole: true }, 1).slice(0, 3)).toEqual([
      "412 files of the lake (2 KiB)",
      "2 tables with 5 rows",
      "1 dashboard",
    ]));
  it("is at least so much where there is too much to count", () =>
    expect(lossWords(card("a"), { files: 40_000, bytes: 0, whole: false }, 0)[0]).toMatch(/^at least 40,000 files/));
});

describe("files that are dropped", () => {
  it("are taken if they may be CSVs", () => {
    const file = (name: string, type = "") => new File([""], name, { type });
    const names = csvsOf([file("a.csv"), file("b.CSV.gz"), file("c.png"), file("d", "text/csv"), file("e.csv.zst")]);
    expect(names.map(({ name }) => name)).toEqual(["a.csv", "b.CSV.gz", "d", "e.csv.zst"]);
  });
});
