import { expect, it } from "vitest";
import { patternOf, strftimeOf } from "./time-pattern";

it.each([
  ["MM/DD/YYYY", "%m/%d/%Y"],
  ["dd.mm.yyyy", "%d.%m.%Y"],
  ["TT.MM.JJJJ", "%d.%m.%Y"],
  ["YYYYMMDD", "%Y%m%d"],
  ["DD-MM-YY", "%d-%m-%y"],
  ["YYYY-MM-DD HH:MM:SS", "%Y-%m-%d %H:%M:%S"],
  ["yyyy-MM-ddTHH:mm", "%Y-%m-%dT%H:%M"],
  ["HH:mm", "%H:%M"],
  ["%d.%m.%Y", "%d.%m.%Y"],
  ["epoch_ms", "epoch_ms"],
  ["ISO 8601", "iso"],
  ["March", "March"],
  ["DD-Mon-YYYY", "%d-%b-%Y"],
  ["DD. Month YYYY", "%d. %B %Y"],
  ["", ""],
])("%s is %s", (text, pattern) => {
  expect(strftimeOf(text)).toBe(pattern);
});

it.each([
  ["%d-%b-%Y", "DD-Mon-YYYY"],
  ["%m/%d/%Y %H:%M", "MM/DD/YYYY HH:MM"],
  ["%Y-%m-%dT%H:%M:%S", "YYYY-MM-DDTHH:MM:SS"],
  ["%I:%M %p", "%I:%M %p"],
  ["%H%M", "HHMM"],
  ["%M:%S", "%M:%S"],
  ["excel", "excel"],
  ["iso", "ISO 8601"],
  ["", ""],
])("%s is written as %s", (strftime, text) => expect(patternOf(strftime)).toBe(text));
