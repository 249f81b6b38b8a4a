import { expect, it } from "vitest";
import { linesBeforeHeader, readHead } from "./file-head";

const found = (...lines: string[]) => linesBeforeHeader(lines, ",", '"');
const records = ["1,2024-01-02,3", "2,2024-01-03,5"];

it("the header is found below titles, notes and empty lines", () => {
  expect(found("Sales report 2024", "", "id,day,amount", ...records)).toBe(2);
  expect(found("Sales report 2024,,", "id,day,amount", ...records)).toBe(1);
  expect(found("Sales report 2024", "Acme Ltd, all regions", "", "id,day,amount", ...records)).toBe(3);
  expect(found("# made by a tool", "id,name", '1,"a, b"', "2,c")).toBe(1);
});

it("a line break in quotes ends no record", () => {
  const noted = (id: number) => [`${id},2024-01-02,"first`, `second, ""third""`, 'last"'];
  const rows = [1, 2, 3].flatMap(noted);
  expect(found("Visits", "id,day,note", ...rows)).toBe(1);
  expect(found('"Visits', 'of 2024"', "id,day,note", ...rows)).toBe(2);
  expect(found("Visits", "id,day,note", ...rows, '4,2024-01-02,"cut', "here")).toBe(1);
  expect(
    found("Visits", "id,day,size", "1,2024-01-02,5", '2,2024-01-03,"', ...Array<string>(12).fill("3,2024-01-04,6")),
  ).toBe(1);
  expect(readHead(["Visits", 'id,"day', 'of visit",note', ...rows])).toMatchObject({
    before: 1,
    header: ["id", "day\nof visit", "note"],
  });
});

it("a header in the first line, and records without names, have none before them", () => {
  expect(found("id,day,amount", ...records)).toBeUndefined();
  expect(found("id,day,amount", "a,b,c", ...records)).toBeUndefined();
  expect(found(...records, ...records)).toBeUndefined();
  expect(found("one", "two", "three", "four")).toBeUndefined();
  expect(found("Title", "id,amount,amount", "1,2,3", "2,3,4")).toBeUndefined();
});
