import { describe, expect, it } from "vitest";
import type { Table } from "../api/types";
import type { ColumnProfile } from "./builder/profile";
import { freeName } from "./make";
import { starterText } from "./starter";
import { choicesOf, parsed, valueOf } from "./yaml";
import { statementOf } from "./builder/statement";

const profile = (name: string, type: string, more: Partial<ColumnProfile> = {}): ColumnProfile => ({
  name,
  type,
  distinct: 5,
  min: undefined,
  max: undefined,
  hours: false,
  ...more,
});
const made = (columns: ColumnProfile[]) => {
  const schema = columns.map(({ name, type }) => ({ name, type, nullable: true }));
  return starterText({ name: "sales", schema } as unknown as Table, { rows: 1_000, columns });
};
const day = profile("day", "date", { distinct: 60, min: Date.UTC(2024, 0, 1), max: Date.UTC(2024, 1, 29) });
const amount = profile("amount", "decimal(18,2)", { distinct: 900, min: 1, max: 60 });

interface Made {
  panels: { id: string; type: string; width: number }[];
  queries: Record<string, { sql: string }>;
  params?: { name: string }[];
}
const read = (text: string) => valueOf(parsed(text)) as Made;

describe("starter dashboard", () => {
  it.each<[string, ColumnProfile[], string[]]>([
    ["nothing but rows", [], ["rows"]],
    ["a category", [profile("shop", "string")], ["rows", "kinds"]],
    ["a rate", [profile("speed", "float64", { distinct: 90 })], ["rows", "average"]],
    ["an amount", [amount], ["rows", "total", "average"]],
    ["an ID only", [profile("customer_id", "int64", { distinct: 900, min: 1, max: 900 })], ["rows"]],
  ])("for %s has key figures that fill a row", (_, columns, ids) => {
    const numbers = read(made(columns)).panels.filter(({ type }) => type === "kpi");
    expect(numbers.map(({ id }) => id)).toEqual(ids);
    expect(numbers.reduce((sum, { width }) => sum + width, 0)).toBe(12);
  });

  it("shows amounts over time and by category within a period, all editable in the builder", () => {
    const text = made([profile("shop", "string"), day, amount]);
    const { panels, queries, params } = read(text);
    expect(panels.map(({ id }) => id)).toEqual(["rows", "total", "average", "chart", "by_shop", "latest"]);
    expect(params?.map(({ name }) => name)).toEqual(["period"]);
    for (const { sql } of Object.values(queries)) expect(sql).toContain("$period_start IS NULL OR CAST(day AS DATE)");
    const choices = choicesOf(valueOf(parsed(text)));
    for (const [name, { sql }] of Object.entries(queries)) {
      const choice = choices.get(name);
      expect(choice && statementOf(choice)).toBe(sql.trim());
    }
  });
});

describe("dashboard name", () => {
  it("derives from the table's name and is unique", () => {
    expect(freeName("sales", [])).toBe("sales");
    expect(freeName("Ümsätze 24", ["a"])).toBe("umsatze-24");
    expect(freeName("", ["dashboard"])).toBe("dashboard-2");
    expect(freeName("x".repeat(63), ["x".repeat(63)])).toHaveLength(63);
  });
});
