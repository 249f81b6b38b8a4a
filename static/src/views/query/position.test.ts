import { describe, expect, it } from "vitest";
import { failureOf } from "../../api/failure";
import { markAt, positionOf } from "./position";

const marked = (text: string, from: number, line: number, column: number, message = "wrong") => {
  const mark = markAt(text.slice(from), from, { line, column }, message);
  return text.slice(mark.from, mark.to);
};

describe("error position", () => {
  it.each([
    ["selec 1", 0, 1, 1, "selec"],
    ["select\n 1,\n nocol from t", 0, 3, 2, "nocol"],
    ['select "a b" from t', 0, 1, 8, '"a b"'],
    ["select 'abc", 0, 1, 8, "'abc"],
    ["select 1; select (", 10, 1, 8, "("],
    ["select 1", 0, 1, 99, ""],
    ["select 1", 0, 7, 1, ""],
  ])("of %j from %d at %d:%d is %j", (text, from, line, column, expected) =>
    expect(marked(text, from, line, column)).toBe(expected),
  );
  it("is corrected where wide characters shift the columns", () => {
    expect(marked("select '東京', nocol from t", 0, 1, 16, 'column "nocol" not found')).toBe("nocol");
  });
  it("is unchanged if the name is elsewhere", () => {
    expect(marked("select a from t where b", 0, 1, 8, 'no "b"')).toBe("a");
  });
});

describe("error position in a response", () => {
  const failure = (problem: object) => failureOf(400, { error: "invalid_sql", message: "m", problems: [problem] });
  it("is used if there is one", () => {
    expect(positionOf(failure({ line: 2, column: 3 }))).toEqual({ line: 2, column: 3 });
    expect(positionOf(failure({ line: null, column: null }))).toBeUndefined();
  });
});
