/** Number formats by locale. */
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const tenths = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `12,345`. */
export const count = (n: number): string => whole.format(n);
/** `12.3K`, where the title has the exact number. */
export const compact = (n: number): string => short.format(n);
/** A fraction as a percentage: `12.3%`. */
export const share = (n: number): string => percent.format(n);

/** `1.2 MiB`. */
export function bytes(n: number): string {
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${tenths.format(value)} ${UNITS[unit] ?? "B"}`;
}

/** `1 file`, `1,234 files`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** What a run did to a table: `+12 rows`, or `rows replaced` if it has as many as before. */
export const rowsChangeText = (n: number): string =>
  n === 0 ? "rows replaced" : `${signed(n)} ${Math.abs(n) === 1 ? "row" : "rows"}`;

/** `+12`, `−3`, `±0`. */
export function signed(n: number): string {
  if (n === 0) return "±0";
  return n > 0 ? `+${count(n)}` : `−${count(-n)}`;
}
