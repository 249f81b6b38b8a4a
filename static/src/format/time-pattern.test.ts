import { expect, it } from "vitest";
import { strftimeOf } from "./time-pattern";

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
  ["March", "March"],
  ["", ""],
])("%s is %s", (text, pattern) => {
  expect(strftimeOf(text)).toBe(pattern);
});
