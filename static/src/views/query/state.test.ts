import { describe, expect, it } from "vitest";
import { statementToRun } from "./state";

describe("text to run", () => {
  const text = "select 1; select 1";
  it("is the whole text without a selection", () => {
    expect(statementToRun(text, " ", 3)).toEqual({ sql: text, text, from: 0 });
  });
  it("is the selection, with its offset", () => {
    expect(statementToRun(text, "select 1", 18)).toEqual({ sql: "select 1", text, from: 10 });
    expect(statementToRun(text, "select 1", 0)).toEqual({ sql: "select 1", text, from: 0 });
  });
});
