import { expect, it, vi } from "vitest";
import { inTurn } from "./turns";

it("each work has a task of its own, in order, also after one that failed", () => {
  vi.useFakeTimers();
  try {
    const done: string[] = [];
    inTurn(() => done.push("a"));
    const cancel = inTurn(() => done.push("b"));
    inTurn(() => {
      throw new Error("c");
    });
    inTurn(() => done.push("d"));
    expect(done).toEqual([]);
    vi.advanceTimersToNextTimer();
    expect(done).toEqual(["a"]);
    cancel();
    expect(() => vi.advanceTimersToNextTimer()).toThrow("c");
    vi.advanceTimersToNextTimer();
    expect(done).toEqual(["a", "d"]);
    expect(vi.getTimerCount()).toBe(0);
    inTurn(() => done.push("e"));
    vi.runAllTimers();
    expect(done).toEqual(["a", "d", "e"]);
  } finally {
    vi.useRealTimers();
  }
});
