import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Row } from "../../api/types";
import { Pages } from "./pages";

const SIZE = 100;
const TOTAL = 100_000;

interface Fetch {
  first: number;
  count: number;
  signal: AbortSignal;
  answer: () => void;
  refuse: (error: Error) => void;
}

function world(known: Row[] = []) {
  const fetches: Fetch[] = [];
  let changes = 0;
  const fetch = (first: number, count: number, signal: AbortSignal) =>
    new Promise<Row[]>((resolve, reject) => {
      const answer = () => resolve(Array.from({ length: count }, (_, at) => [first + at]));
      fetches.push({ first, count, signal, answer, refuse: reject });
    });
  const pages = new Pages(TOTAL, SIZE, fetch, () => (changes += 1), known);
  return { fetches, pages, changes: () => changes };
}

const passed = () => vi.advanceTimersByTimeAsync(100);

describe("row pages", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are fetched on demand and then available", async () => {
    const { fetches, pages, changes } = world();
    pages.need(0, 30);
    expect(fetches.map(({ first, count }) => [first, count])).toEqual([[0, SIZE]]);
    expect(pages.get(5)).toBeUndefined();
    fetches[0]?.answer();
    await passed();
    expect(pages.get(5)).toEqual([5]);
    expect(changes()).toBe(1);
    pages.need(10, 40);
    await passed();
    expect(fetches).toHaveLength(1);
  });

  it("are fetched two at a time, nearest first", async () => {
    const { fetches, pages } = world();
    pages.need(150, 460);
    expect(fetches.map(({ first }) => first)).toEqual([300, 200]);
    fetches[0]?.answer();
    await passed();
    expect(fetches.map(({ first }) => first).slice(2)).toHaveLength(1);
  });

  it("that were scrolled past are skipped or aborted", async () => {
    const { fetches, pages } = world();
    pages.need(0, 30);
    for (let at = 1; at < 50; at += 1) pages.need(at * 1_000, at * 1_000 + 30);
    await passed();
    expect(fetches.map(({ first }) => first)).toEqual([0, 49_000]);
    expect(fetches[0]?.signal.aborted).toBe(true);
  });

  it("that stay visible are fetched while scrolling continues", async () => {
    const { fetches, pages } = world();
    for (let at = 0; at < 40; at += 1) {
      pages.need(500 + at, 530 + at);
      await vi.advanceTimersByTimeAsync(16);
    }
    expect(fetches.map(({ first }) => first)).toEqual([500]);
  });

  it("are cached up to a limit, least recently used evicted first", async () => {
    const { fetches, pages } = world();
    for (let at = 0; at < 200; at += 1) {
      pages.need(at * SIZE, at * SIZE + 10);
      await passed();
      fetches.at(-1)?.answer();
      await passed();
    }
    const kept = Array.from({ length: 200 }, (_, at) => pages.get(at * SIZE)).filter(Boolean);
    expect(kept.length).toBeLessThanOrEqual(61);
    expect(pages.get(199 * SIZE)).toEqual([19_900]);
    expect(pages.get(0)).toBeUndefined();
  });

  it("that failed show the error, and are fetched again on request", async () => {
    const { fetches, pages } = world();
    pages.need(0, 30);
    fetches[0]?.refuse(new Error("no store"));
    await passed();
    expect(pages.failure).toEqual(new Error("no store"));
    pages.need(5, 35);
    await passed();
    expect(fetches).toHaveLength(1);
    pages.retry();
    expect(pages.failure).toBeUndefined();
    expect(fetches).toHaveLength(2);
    fetches[1]?.answer();
    await passed();
    expect(pages.get(0)).toEqual([0]);
  });

  it("that failed are refetched once the service responds; others aren't", async () => {
    const { fetches, pages, changes } = world();
    pages.need(0, 30);
    pages.recovered();
    expect(fetches).toHaveLength(1);
    expect(changes()).toBe(0);
    fetches[0]?.refuse(new Error("no store"));
    await passed();
    pages.recovered();
    expect(pages.failure).toBeUndefined();
    expect(fetches).toHaveLength(2);
  });

  it("start with the rows already known", async () => {
    const { fetches, pages } = world(Array.from({ length: SIZE }, (_, at) => [at]));
    pages.need(0, 30);
    await passed();
    expect(fetches).toHaveLength(0);
    expect(pages.get(99)).toEqual([99]);
  });

  it("that are only partly known are fetched", () => {
    const { fetches, pages } = world([[0], [1]]);
    pages.need(0, 30);
    expect(fetches).toHaveLength(1);
  });

  it("end with the rows", () => {
    const { fetches, pages } = world();
    pages.need(TOTAL - 30, TOTAL + 30);
    expect(fetches.map(({ first, count }) => [first, count])).toEqual([[TOTAL - SIZE, SIZE]]);
  });

  it("are aborted once nobody needs them", async () => {
    const { fetches, pages, changes } = world();
    pages.need(0, 30);
    pages.end();
    expect(fetches[0]?.signal.aborted).toBe(true);
    fetches[0]?.answer();
    await passed();
    expect(changes()).toBe(0);
  });
});
