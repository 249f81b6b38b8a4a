import { expect, it } from "vitest";
import type { Previewed } from "../api/types";
import { checkedOf, ofChecked, readable, rejectedIn } from "./checked";

const previewed = (read: number, rejected: number, failure?: string): Previewed =>
  ({
    counts: { rows_read: read, rows_rejected: rejected },
    rejects: rejected > 0 ? [{ line: 7, column: "n", message: "no" }] : [],
    failure: failure === undefined ? null : { code: "x", message: failure, detail: null },
  }) as unknown as Previewed;

const samples = [{ name: "a.csv" }, { name: "b.csv" }, { name: "b.csv", piece: "end" }];

it("says that rows can be read only once every file was read", () => {
  expect(checkedOf(samples, [previewed(5, 0), undefined, previewed(3, 0)])).toBeUndefined();
  const checked = checkedOf(samples, [previewed(5, 0), previewed(4, 0), previewed(3, 0)]);
  expect(checked).toMatchObject({ read: 12, rejected: 0, files: 2, failure: undefined });
  expect([ofChecked(2, 9, true), ofChecked(2, 9, false)]).toEqual(["2 of 9 rows", "2 of 9 checked rows"]);
  expect(checked && readable(checked, true)).toBe("All 12 rows of 2 files can be read.");
  expect(checked && readable(checked, false)).toBe(
    "Checked 12 rows of 2 files: all can be read. Others weren't checked.",
  );
});

it("names the file of each rejected row and of a failure", () => {
  const checked = checkedOf(samples, [previewed(5, 0), previewed(4, 1), previewed(3, 1, "no header")]);
  expect(checked?.rejected).toBe(2);
  expect(checked?.rejects.map(({ file, piece, line }) => [file, piece, line])).toEqual([
    ["b.csv", false, 7],
    ["b.csv", true, 7],
  ]);
  expect(checked?.failure).toBe("b.csv: no header");
  const staged = [previewed(0, 0, "`.0/b_.txt` does not fit table `t`")];
  expect(checkedOf([{ name: "b?.csv" }], staged)?.failure).toBe("`b?.csv` does not fit table `t`");
});

it("says how many rows have a value of a column that can't be read, and which the first is", () => {
  const value = (text: string) => ({
    ...{ file: "a.csv", piece: false, line: 2, column: "n", value: text, reason: "wrong_type" },
    message: `expected int64, found \`${text}\``,
  });
  const of = (texts: string[], rejected = texts.length) =>
    rejectedIn({ read: 4, rejected, rejects: texts.map(value), files: 1, failure: undefined } as never)[0].get("n");
  const first = "`12 pieces` isn't a whole number in this column's format";
  expect(of(["12 pieces"])).toMatchObject({ count: 1, why: `1 of 4 rows can't be read: ${first}` });
  expect(of(["12 pieces", "x"])?.why).toBe(`2 of 4 rows can't be read, the first because ${first}`);
  expect(of(["12 pieces"], 900)?.why).toBe(`some rows can't be read: ${first}`);
});
