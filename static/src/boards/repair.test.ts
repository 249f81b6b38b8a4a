import { describe, expect, it } from "vitest";
import type { DashboardProblem } from "../api/types";
import { plainProblem, repaired, repairOf } from "./repair";

const MESSAGE = 'referenced column "amount" not found in FROM clause!; Candidate bindings: "day", "amount_eur"';

it("the closest candidate is proposed; none if the message has no candidates", () => {
  expect(repairOf(MESSAGE)).toBe("Replace `amount` by `amount_eur`.");
  expect(repairOf('Table with name sale does not exist! Did you mean "sales"?')).toBe("Replace `sale` by `sales`.");
  expect(repairOf("expected a number")).toBeUndefined();
});

it.each([
  [MESSAGE, "The column `amount` doesn't exist"],
  ['Values list "s" does not have a column named "amount"', "The column `amount` doesn't exist"],
  ['Table with name sale does not exist! Did you mean "sales"?', "The table `sale` doesn't exist"],
  ["panels use `y`, which the query doesn't return", "panels use `y`, which the query doesn't return"],
])("%j is told in plain words", (message, expected) => expect(plainProblem(message)).toBe(expected));

describe("a proposed repair", () => {
  const problem = (line: number, column: number, message = MESSAGE) => ({ message, line, column }) as DashboardProblem;

  it("replaces the name where the problem is, and nowhere else", () => {
    const text = "  q:\n    sql: SELECT sum(amount) AS amount FROM sales\n";
    expect(repaired(text, problem(2, 21))).toBe("  q:\n    sql: SELECT sum(amount_eur) AS amount FROM sales\n");
    expect(repaired("x: ö amount", problem(1, 6))).toBe("x: ö amount_eur");
    expect(repaired("WHERE s.amount > 1", problem(1, 7))).toBe("WHERE s.amount_eur > 1");
  });
  it("keeps the name of a result's column, which panels use", () => {
    expect(repaired("SELECT day, amount\nFROM sales", problem(1, 13))).toBe(
      "SELECT day, amount_eur AS amount\nFROM sales",
    );
    const grouped = "SELECT day FROM sales GROUP BY day, amount";
    expect(repaired(grouped, problem(1, 37))).toBe("SELECT day FROM sales GROUP BY day, amount_eur");
  });
  it("isn't made where the text has another name", () => {
    expect(repaired("SELECT amounts FROM sales", problem(1, 8))).toBeUndefined();
    expect(repaired("SELECT amount FROM sales", problem(1, 8, "expected a number"))).toBeUndefined();
  });
});
