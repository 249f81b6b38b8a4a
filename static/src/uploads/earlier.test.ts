import { describe, expect, it } from "vitest";
import { namesOf } from "./keys";
import { formsOf } from "./source-names";

const forms = (name: string, stored: string[]) => stored.filter((one) => formsOf(name).test(one));

describe("forms of a file", () => {
  it("are the file itself, compressed, and in parts", () => {
    const stored = ["a.csv", "a.csv.gz", "a.csv.zst", "a-part-001.csv", "a-part-0012.csv.gz"];
    expect(forms("a.csv", stored)).toEqual(stored);
    expect(forms("a.csv.gz", stored)).toEqual(stored);
  });
  it("are no other files", () =>
    expect(forms("a.csv", ["ab.csv", "a-2.csv", "a.tsv", "a-part-1.csv", "a-part-001", "xa.csv", "A.csv"])).toEqual(
      [],
    ));
  it("take signs in the name literally", () =>
    expect(forms("a+(1).csv", ["a+(1)-part-001.csv", "aa1.csv"])).toEqual(["a+(1)-part-001.csv"]));
});

it("names of objects are cut", () =>
  expect(namesOf(["p/a-1.csv", "p/a-2.csv", "p/a-3.csv"])).toBe("a-1.csv, a-2.csv and 1 more"));
