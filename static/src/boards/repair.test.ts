import { describe, expect, it } from "vitest";
import type { DashboardProblem } from "../api/types";
import { brokenBy, plainProblem, repaired, repairOf, wasRenamed } from "./repair";

const MESSAGE = 'referenced column "amount" not found in FROM clause!; Candidate bindings: "day", "amount_eur"';

it("the closest candidate is proposed; none if the message has no candidates", () => {
  expect(repairOf(MESSAGE)).toBe("Replace `amount` by `amount_eur`.");
  expect(repairOf('Table with name sale does not exist! Did you mean "sales"?')).toBe("Replace `sale` by `sales`.");
  expect(repairOf("expected a number")).toBeUndefined();
});

describe("a name that was renamed in the config", () => {
  const column = (from: string, to: string, table = "sales") => ({ table, from, to });

  it("is replaced by its new name, whatever the message proposes", () => {
    const renames = [column("Amount", "revenue"), { table: null, from: "amount", to: "amounts" }];
    expect(repairOf(MESSAGE, renames)).toBe("Replace `amount` by `revenue`.");
    expect(wasRenamed(MESSAGE, renames)).toBe(true);
    const at = { message: MESSAGE, line: 1, column: 8 };
    expect(repaired("SELECT amount FROM sales", at, renames)).toBe("SELECT revenue AS amount FROM sales");
    const table = 'Catalog Error: Table with name amount does not exist!\nDid you mean "pg_am"?';
    expect(repairOf(table, renames)).toBe("Replace `amount` by `amounts`.");
  });

  it("is replaced as the message proposes if it has several new names, or none", () => {
    const several = [column("amount", "revenue"), column("amount", "total", "refunds")];
    for (const renames of [several, [column("day", "date")], []]) {
      expect(repairOf(MESSAGE, renames)).toBe("Replace `amount` by `amount_eur`.");
      expect(wasRenamed(MESSAGE, renames)).toBe(false);
    }
    expect(wasRenamed("expected a number", several)).toBe(false);
  });
});

it.each([
  [MESSAGE, "The column `amount` doesn't exist"],
  ['Values list "s" does not have a column named "amount"', "The column `amount` doesn't exist"],
  ['Table with name sale does not exist! Did you mean "sales"?', "The table `sale` doesn't exist"],
  ["panels use `y`, which the query doesn't return", "panels use `y`, which the query doesn't return"],
])("%j is reworded", (message, expected) => expect(plainProblem(message)).toBe(expected));

it.each([
  [MESSAGE, "it uses the column `amount`, which is gone"],
  ['Table with name sale does not exist! Did you mean "sales"?', "it uses the table `sale`, which is gone"],
  [
    "No function matches the given name and argument types 'date_trunc(STRING_LITERAL, VARCHAR)'. You might need",
    "it uses `date_trunc`, which doesn't take the new type of the column",
  ],
  [
    "panels or options use `y`, which the query would no longer return",
    "panels or options use `y`, which the query would no longer return",
  ],
  ["out of memory", undefined],
])("%j breaks a query, and is said in plain words", (message, expected) => expect(brokenBy(message)).toBe(expected));

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
