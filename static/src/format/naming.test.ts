import { describe, expect, it } from "vitest";
import { isNaming } from "./naming";

describe("numeric identifiers", () => {
  it.each([
    "id",
    "customer_id",
    "customerId",
    "ID",
    "zip",
    "ship zip",
    "order-no",
    "OrderNumber",
    "model_year",
    "ISBN",
  ])("are recognized by the last word of %s", (name) => expect(isNaming(name, "int64")).toBe(true));
  it.each(["paid", "id_count", "amount", "grid", "yearly", "codes_used", "distance", "annotation"])(
    "don't include the amounts in %s",
    (name) => expect(isNaming(name, "int64", [10_045, 20_000, 1])).toBe(false),
  );
  it("are numeric columns only", () => {
    expect(isNaming("id", "string")).toBe(false);
    expect(isNaming("id", "decimal(18,0)")).toBe(true);
  });
  it("are times of day if all values could be", () => {
    expect(isNaming("sched_dep_time", "int16", [517, 2359, null, 1030])).toBe(true);
    expect(isNaming("air_time", "int32", [517, 1080, 60])).toBe(false);
    expect(isNaming("dep_time", "int16", [])).toBe(false);
  });
  it("are years if the name allows it and all values could be", () => {
    expect(isNaming("built", "int32", [1987, 2004, null, 2013])).toBe(true);
    expect(isNaming("built", "int32", [1987, 2004, 12_000])).toBe(false);
    expect(isNaming("passengers", "int32", [1987, 2004, 2013])).toBe(false);
    expect(isNaming("built", "int32", [1987])).toBe(false);
  });
});
