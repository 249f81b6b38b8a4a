/**
 * Detects numeric identifiers: IDs, codes, years, times of day. They aren't summed, and separators (`2,013`) make
 * them hard to read. The schema doesn't distinguish them from amounts; names and values do.
 *
 * Uses the last word of the name, so `customer_id` and `customerId` match, `paid` and `id_count` don't.
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
/** Fewer values are not evidence. */
const VALUES_MIN = 3;
const [YEAR_MIN, YEAR_MAX] = [1_800, 2_100];

export const words = (name: string): string[] =>
  name
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== "");

const isYear = (value: number): boolean => Number.isInteger(value) && value >= YEAR_MIN && value <= YEAR_MAX;
/** `517` is 5:17, `2400` midnight. */
const isClock = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 2_400 && value % 100 < 60;

/** Whether numbers are shown without separators; `values` are the first of the column. */
export function isNaming(name: string, type: string, values: Iterable<Cell | undefined> = []): boolean {
  if (!isNumeric(type)) return false;
  const last = words(name).at(-1) ?? "";
  if (NAMES.has(last)) return true;
  const numbers = [...values].filter((value) => typeof value === "number");
  if (numbers.length < VALUES_MIN) return false;
  if (TIMES.has(last)) return numbers.every(isClock);
  // Without a hint in the name, amounts could be mistaken for years.
  return (YEARS.has(last) || last === "" || last === "y") && numbers.every(isYear);
}
