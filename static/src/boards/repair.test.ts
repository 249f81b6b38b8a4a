import { expect, it } from "vitest";
import { repairOf } from "./repair";

it("the closest candidate is proposed; none if the message has no candidates", () => {
  const message = 'Referenced column "amount" not found in FROM clause! Candidate bindings: "day", "amount_eur"';
  expect(repairOf(message)).toBe("Replace `amount` by `amount_eur`.");
  expect(repairOf('Table with name sale does not exist! Did you mean "sales"?')).toBe("Replace `sale` by `sales`.");
  expect(repairOf("expected a number")).toBeUndefined();
});
