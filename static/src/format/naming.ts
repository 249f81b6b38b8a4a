/**
 * Numbers that are names: ids, codes, years, times of day. Nobody adds them up, and grouped (`2,013`) they are hard to
 * read. A schema doesn't tell them from amounts; names and values do.
 *
 * Names are looked at by their last word, so `customer_id` and `customerId` are ids, and `paid` and `id_count` are none.
 */
import type { Cell } from "../api/types";
import { isNumeric } from "./values";

const NAMES = new Set([
  ...["id", "key", "pk", "fk", "uid", "gid", "pid", "code", "zip", "zipcode", "postcode", "postal", "plz"],
  ...[
    "year",
    "yr",
    "number",
    "no",
    "nr",
    "num",
    "phone",
    "tel",
    "fax",
    "isbn",
    "ean",
    "gtin",
    "sku",
    "barcode",
    "serial",
  ],
  ...["iban", "fence", "flight"],
]);
const TIMES = new Set(["time", "hhmm", "hour", "clock"]);
const YEARS = new Set(["years", "season", "vintage", "born", "founded", "built", "since", "from", "until", "date"]);
/** Fewer values prove nothing. */
const VALUES_MIN = 3;
const [YEAR_MIN, YEAR_MAX] = [1_800, 2_100];

const words = (name: string): string[] =>
  name
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== "");

const isYear = (value: number): boolean => Number.isInteger(value) && value >= YEAR_MIN && value <= YEAR_MAX;
/** `517` is 5:17, `2400` midnight. */
const isClock = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 2_400 && value % 100 < 60;

/** Whether a column's numbers are written without separators; `values` are some of its first. */
export function isNaming(name: string, type: string, values: Iterable<Cell | undefined> = []): boolean {
  if (!isNumeric(type)) return false;
  const last = words(name).at(-1) ?? "";
  if (NAMES.has(last)) return true;
  const numbers = [...values].filter((value) => typeof value === "number");
  if (numbers.length < VALUES_MIN) return false;
  if (TIMES.has(last)) return numbers.every(isClock);
  // Without a word for it, amounts that happen to lie in between would be taken for years.
  return (YEARS.has(last) || last === "" || last === "y") && numbers.every(isYear);
}
