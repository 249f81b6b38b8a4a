import { expect, it } from "vitest";
import { identifier, quoted } from "./sql";

it.each([
  ["trips", "trips"],
  ["_rejected_rows", "_rejected_rows"],
  ["Fare", "Fare"],
  ["order", '"order"'],
  ["Order", '"Order"'],
  ["placing", '"placing"'],
  ["left", '"left"'],
  ["a b", '"a b"'],
  ['a"b', '"a""b"'],
  ["1st", '"1st"'],
])("the identifier %s is written %s", (name, written) => expect(identifier(name)).toBe(written));

it("any identifier can be quoted", () => expect(quoted('a"b')).toBe('"a""b"'));
