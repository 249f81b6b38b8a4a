import { describe, expect, it } from "vitest";
import { freeSlug, slugFault, slugFrom } from "./slug";

describe("slugs", () => {
  it.each(["a", "0", "daily-sales_2", "x".repeat(63)])("can be %j", (slug) => expect(slugFault(slug)).toBeUndefined());
  it.each([
    ["", "Enter a URL name."],
    ["-a", "Start with a letter or digit."],
    ["A", "“A” isn't allowed. Use a-z, 0-9, _ and -."],
    ["a b", "A space isn't allowed. Use a-z, 0-9, _ and -."],
    ["ä", "“ä” isn't allowed. Use a-z, 0-9, _ and -."],
    ["x".repeat(64), "Use at most 63 characters, not 64."],
  ])("can't be %j", (slug, fault) => expect(slugFault(slug)).toBe(fault));
  it.each([
    ["Daily sales (EU)", "daily-sales-eu"],
    ["shop_2024-03", "shop-2024-03"],
    ["__daily__sales__", "daily-sales"],
    ["Übersicht", "ubersicht"],
    ["  --  ", ""],
    ["日本", ""],
  ])("are derived from the title %j", (title, slug) => expect(slugFrom(title)).toBe(slug));
  it("are made unique", () => {
    expect(freeSlug("flights", ["orders"])).toBe("flights");
    expect(freeSlug("flights", ["flights", "flights-2"])).toBe("flights-3");
    expect(freeSlug("x".repeat(63), ["x".repeat(63)])).toHaveLength(63);
  });
});
