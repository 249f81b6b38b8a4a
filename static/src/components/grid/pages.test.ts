import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Row } from "../../api/types";
import { Pages } from "./pages";

const SIZE = 100;
const TOTAL = 100_000;

interface Asked {
  first: number;
  count: number;
  signal: AbortSignal;
  answer: () => void;
  refuse: (error: Error) => void;
}

function world(known: Row[] = []) {
  const asked: Asked[] = [];
  let changes = 0;
  const fetch = (first: number, count: number, signal: AbortSignal) =>
    new Promise<Row[]>((resolve, reject) => {
      const answer = () => resolve(Array.from({ length: count }, (_, at) => [first + at]));
      asked.push({ first, count, signal, answer, refuse: reject });
    });
  const pages = new Pages(TOTAL, SIZE, fetch, () => (changes += 1), known);
  return { asked, pages, changes: () => changes };
}

const passed = () => vi.advanceTimersByTimeAsync(100);

describe("pages of rows", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are asked for when they are needed, and then there", async () => {
    const { asked, pages, changes } = world();
    pages.need(0, 30);
    expect(asked.map(({ first, count }) => [first, count])).toEqual([[0, SIZE]]);
    expect(pages.get(5)).toBeUndefined();
    asked[0]?.answer();
    await passed();
    expect(pages.get(5)).toEqual([5]);
    expect(changes()).toBe(1);
    pages.need(10, 40);
    await passed();
    expect(asked).toHaveLength(1);
  });

  it("are on their way two at a time, the nearest first", async () => {
    const { asked, pages } = world();
    pages.need(150, 460);
    expect(asked.map(({ first }) => first)).toEqual([300, 200]);
    asked[0]?.answer();
    await passed();
    expect(asked.map(({ first }) => first).slice(2)).toHaveLength(1);
  });

  it("that were scrolled past are not asked for, or given up", async () => {
    const { asked, pages } = world();
    pages.need(0, 30);
    for (let at = 1; at < 50; at += 1) pages.need(at * 1_000, at * 1_000 + 30);
    await passed();
    expect(asked.map(({ first }) => first)).toEqual([0, 49_000]);
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  it("that are still seen are asked for even while rows go on running", async () => {
    const { asked, pages } = world();
    for (let at = 0; at < 40; at += 1) {
      pages.need(500 + at, 530 + at);
      await vi.advanceTimersByTimeAsync(16);
    }
    expect(asked.map(({ first }) => first)).toEqual([500]);
  });

  it("are kept in a bounded number, the ones used last", async () => {
    const { asked, pages } = world();
    for (let at = 0; at < 200; at += 1) {
      pages.need(at * SIZE, at * SIZE + 10);
      await passed();
      asked.at(-1)?.answer();
      await passed();
    }
    const kept = Array.from({ length: 200 }, (_, at) => pages.get(at * SIZE)).filter(Boolean);
    expect(kept.length).toBeLessThanOrEqual(61);
    expect(pages.get(199 * SIZE)).toEqual([19_900]);
    expect(pages.get(0)).toBeUndefined();
  });

  it("that couldn't be read say why, and are asked for again when somebody wants it", async () => {
    const { asked, pages } = world();
    pages.need(0, 30);
    asked[0]?.refuse(new Error("no store"));
    await passed();
    expect(pages.failure).toEqual(new Error("no store"));
    pages.need(5, 35);
    await passed();
    expect(asked).toHaveLength(1);
    pages.retry();
    expect(pages.failure).toBeUndefined();
    expect(asked).toHaveLength(2);
    asked[1]?.answer();
    await passed();
    expect(pages.get(0)).toEqual([0]);
  });

  it("that couldn't be read are asked for again once the service answers, and no others are", async () => {
    const { asked, pages, changes } = world();
    pages.need(0, 30);
    pages.recovered();
    expect(asked).toHaveLength(1);
    expect(changes()).toBe(0);
    asked[0]?.refuse(new Error("no store"));
    await passed();
    pages.recovered();
    expect(pages.failure).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  it("begin with what is known of them", async () => {
    const { asked, pages } = world(Array.from({ length: SIZE }, (_, at) => [at]));
    pages.need(0, 30);
    await passed();
    expect(asked).toHaveLength(0);
    expect(pages.get(99)).toEqual([99]);
  });

  it("of which only a part is known are asked for", () => {
    const { asked, pages } = world([[0], [1]]);
    pages.need(0, 30);
    expect(asked).toHaveLength(1);
  });

  it("end with the rows", () => {
    const { asked, pages } = world();
    pages.need(TOTAL - 30, TOTAL + 30);
    expect(asked.map(({ first, count }) => [first, count])).toEqual([[TOTAL - SIZE, SIZE]]);
  });

  it("are not waited for once nobody wants them", async () => {
    const { asked, pages, changes } = world();
    pages.need(0, 30);
    pages.end();
    expect(asked[0]?.signal.aborted).toBe(true);
    asked[0]?.answer();
    await passed();
    expect(changes()).toBe(0);
  });
});
