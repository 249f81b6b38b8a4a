import { describe, expect, it } from "vitest";
import { columnsIn } from "./sql";

const tables = {
  flights: [
    { label: "carrier", detail: "string" },
    { label: "dep delay", detail: "int64" },
  ],
  airlines: [
    { label: "carrier", detail: "string" },
    { label: "name", detail: "string" },
  ],
};

describe("column completions", () => {
  it("are the columns of the tables in the statement", () => {
    expect(columnsIn("SELECT  FROM airlines", tables).map(({ label }) => label)).toEqual(["carrier", "name"]);
  });
  it("are all columns without duplicates if no table is named", () => {
    const found = columnsIn("SELECT ", tables);
    expect(found.map(({ label }) => label)).toEqual(["carrier", "dep delay", "name"]);
    expect(found[0]?.detail).toBe("string · several tables");
  });
  it("are quoted where SQL requires it", () => {
    const [, delay] = columnsIn("SELECT  FROM flights", tables);
    expect(delay?.apply).toBe('"dep delay"');
  });
});
