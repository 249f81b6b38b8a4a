import { describe, expect, it } from "vitest";
import { dayOf, plainNumber } from "./typed";

describe("a day", () => {
  it.each([
    ["2024-05-31", "en-US", "2024-05-31"],
    ["31.05.2024", "de-DE", "2024-05-31"],
    ["1.3.24", "de-DE", "2024-03-01"],
    ["5/3/2024", "en-US", "2024-05-03"],
    ["5/3/2024", "en-GB", "2024-03-05"],
    ["31/05/2024", "en-US", "2024-05-31"],
    ["May 31, 2024", "en-US", "2024-05-31"],
    ["31 May 2024", "en-GB", "2024-05-31"],
    ["1. März 2024", "de-DE", "2024-03-01"],
    ["2024/5/31", "ja-JP", "2024-05-31"],
  ])("%s is read as people of %s mean it", (text, locale, day) => expect(dayOf(text, locale)).toBe(day));
  it.each(["31.02.2024", "2024-13-01", "May 2024", "01.03.2024 - 31.05.2024", "yesterday", "1/2", ""])(
    "%j isn't one",
    (text) => expect(dayOf(text, "de-DE")).toBeUndefined(),
  );
});

describe("a number", () => {
  it.each([
    ["1,234.5", "en-US", "1234.5"],
    ["1.234,5", "de-DE", "1234.5"],
    ["-12,5", "de-DE", "-12.5"],
    ["1 234,5", "fr-FR", "1234.5"],
    ["1,5", "en-US", undefined],
    ["abc", "en-US", undefined],
  ])("%s in %s is %s", (text, locale, number) => expect(plainNumber(text, locale)).toBe(number));
});
