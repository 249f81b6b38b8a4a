import { describe, expect, it } from "vitest";
import { bytes, counted, signed } from "./number";
import { ago, duration, timeLeft } from "./time";

describe("durations", () => {
  it.each([
    [0, "0 ms"],
    [999.4, "999 ms"],
    [1_000, "1.0 s"],
    [9_960, "10 s"],
    [59_499, "59 s"],
    [59_700, "1 min"],
    [200_000, "3 min 20 s"],
    [3_600_000, "1 h"],
    [7_500_000, "2 h 5 min"],
  ])("of %d ms are shown in suitable units", (ms, expected) => expect(duration(ms)).toBe(expected));
});

describe("time left", () => {
  it.each([
    [1, "1 s"],
    [2_400, "3 s"],
    [59_100, "1 min"],
    [61_000, "1 min 1 s"],
  ])("of %d ms is in whole seconds", (ms, expected) => expect(timeLeft(ms)).toBe(expected));
});

describe("times", () => {
  const now = new Date("2026-01-31T12:00:00Z");
  const before = (seconds: number) => ago(new Date(now.getTime() - seconds * 1000), now);

  it("within the last seconds fit into sentences", () => expect(before(4)).toBe("just now"));
  it("are relative for a month", () => {
    expect(before(61)).toMatch(/1/);
    expect(before(29 * 86_400)).toMatch(/29/);
  });
  it("are dates after a month", () => expect(before(31 * 86_400)).toMatch(/2025|12|Dec/));
  it("in the future are shown as such", () => expect(before(-30)).toMatch(/in|30/));
});

describe("numbers", () => {
  it("of bytes use factors of 1024", () => {
    expect(bytes(1023)).toMatch(/^1,?023 B$/);
    expect(bytes(1536)).toMatch(/^1[.,]5 KiB$/);
    expect(bytes(5 * 2 ** 30)).toBe("5 GiB");
  });
  it("use the singular for one", () => {
    expect(counted(1, "file")).toBe("1 file");
    expect(counted(0, "file")).toBe("0 files");
    expect(counted(2, "query", "queries")).toBe("2 queries");
  });
  it("of changes have a sign", () => {
    expect(signed(3)).toBe("+3");
    expect(signed(-3)).toBe("−3");
    expect(signed(0)).toBe("±0");
  });
});
