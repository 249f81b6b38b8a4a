import { describe, expect, it } from "vitest";
import { arranged, type PipelineCard } from "./cards";

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

describe("pipeline cards", () => {
  const cards = [
    card("c", { rows: 5, last_job: ran("completed", "2026-01-03") }),
    card("a", { title: "Sales of Europe", last_job: ran("failed", "2026-01-01") }),
    card("b", { rows: 9, config: "missing" }),
  ];
  const order = (...args: Parameters<typeof arranged> extends [unknown, ...infer R] ? R : never) =>
    arranged(cards, ...args).map(({ slug }) => slug);
  it("are sorted by star, then by the title that they show", () =>
    expect(order("", "starred", ["c"])).toEqual(["c", "b", "a"]));
  it("are sorted by last run", () => expect(order("", "last-run", [])).toEqual(["c", "a", "b"]));
  it("are sorted by rows, unknown ones last", () => expect(order("", "rows", [])).toEqual(["b", "c", "a"]));
  it("are sorted with failing pipelines first", () => expect(order("", "troubled", [])).toEqual(["b", "a", "c"]));
  it("are found by words of slug and title", () => {
    expect(order("europe sales", "name", [])).toEqual(["a"]);
    expect(order("nothing", "name", [])).toEqual([]);
  });
});
