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

describe("columns of a statement", () => {
  it("are those of the tables that it names", () => {
    expect(columnsIn("SELECT  FROM airlines", tables).map(({ label }) => label)).toEqual(["carrier", "name"]);
  });
  it("are all where it names none, each once", () => {
    const found = columnsIn("SELECT ", tables);
    expect(found.map(({ label }) => label)).toEqual(["carrier", "dep delay", "name"]);
    expect(found[0]?.detail).toBe("string · several tables");
  });
  it("stand in quotes where SQL needs them", () => {
    const [, delay] = columnsIn("SELECT  FROM flights", tables);
    expect(delay?.apply).toBe('"dep delay"');
  });
});
