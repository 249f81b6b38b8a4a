/** The format of CSVs, as in the `csv` of a config. */
import { count, counted } from "../format/number";

/** The `csv` object of a mapping, without defaults. */
export type Dialect = Record<string, unknown>;

/** Defaults of a config. */
const DEFAULTS: Dialect = {
  delimiter: ",",
  quote: '"',
  quotes: "strict",
  escape: null,
  header: true,
  skip_rows: 0,
  skip_rows_after_header: 0,
  skip_footer_rows: 0,
  footer_values: null,
  record_terminator: "auto",
  comment: null,
  encoding: "utf-8",
  null_values: [""],
  quoted_nulls: false,
  trim: false,
  decimal: ".",
  thousands: null,
  true_values: ["true"],
  false_values: ["false"],
  ragged_rows: "reject",
  record_bytes_max: 2_097_152,
};

/** The effective value of a setting. */
export const itemOf = (dialect: Dialect, item: string): unknown => dialect[item] ?? DEFAULTS[item];

/** Changes a setting; defaults are omitted. */
export function changed(dialect: Dialect, item: string, value: unknown): Dialect {
  // Without a footer, nothing marks one.
  const dropped = item === "skip_footer_rows" && value === 0 ? [item, "footer_values"] : [item];
  const rest = Object.fromEntries(Object.entries(dialect).filter(([name]) => !dropped.includes(name)));
  return JSON.stringify(value) === JSON.stringify(DEFAULTS[item]) ? rest : { ...rest, [item]: value };
}

/** Settings that change how a file is split into columns. */
const COLUMN_SETTINGS = [
  "delimiter",
  "quote",
  "escape",
  "header",
  "skip_rows",
  "encoding",
  "comment",
  "record_terminator",
];
export const changesColumns = (item: string): boolean => COLUMN_SETTINGS.includes(item);

/** Settings that tell one format from another; others are about values. */
const FORMAT_SETTINGS = ["delimiter", "quote", "header", "skip_rows", "skip_rows_after_header", "encoding", "decimal"];

/** Whether files of the two formats can't be read with the same settings. */
export const isOtherFormat = (one: Dialect, other: Dialect): boolean =>
  FORMAT_SETTINGS.some((item) => JSON.stringify(itemOf(one, item)) !== JSON.stringify(itemOf(other, item)));

export const isDialect = (value: unknown): value is Dialect =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Values that mark a footer: `“Total” or “Generated…”`; empty if there are none. */
export const footerMarks = (values: readonly string[]): string =>
  values.map((value) => `“${value.replace(/\*$/, "…")}”`).join(" or ");

/** Names of separators. */
export const SIGNS: Record<string, string> = {
  ",": "comma",
  ".": "point",
  ";": "semicolon",
  "\t": "tab",
  "|": "pipe",
  " ": "space",
  "'": "apostrophe",
};

/** The encodings of all samples: a byte order mark takes precedence over the setting. */
export function encodingsOf(dialect: Dialect, samples: readonly { mark?: string | undefined }[]): string {
  const set = String(itemOf(dialect, "encoding"));
  const found = new Set(samples.length > 0 ? samples.map(({ mark }) => mark ?? set) : [set]);
  return [...found].map((one) => one.toUpperCase()).join(" and ");
}

/** `with header`, `header in line 4`, …: also where columns are read by their position below the header. */
function headerText(dialect: Dialect): string {
  const skipped = Number(itemOf(dialect, "skip_rows"));
  if (itemOf(dialect, "header") === true) return skipped > 0 ? `header in line ${count(skipped + 1)}` : "with header";
  return skipped > 0 ? `columns by position from line ${count(skipped + 1)} on` : "without header";
}

/** The settings of a format in one line. */
export function formatText(dialect: Dialect, samples: readonly { mark?: string | undefined }[]): string {
  const delimiter = String(itemOf(dialect, "delimiter"));
  const parts = [
    `${SIGNS[delimiter] ?? `“${delimiter}”`}-separated`,
    encodingsOf(dialect, samples),
    headerText(dialect),
    ...(itemOf(dialect, "decimal") === "," ? ["decimal comma"] : []),
    ...(footerOf(dialect) ? [footerOf(dialect) ?? ""] : []),
  ];
  return parts.join(", ");
}

/** Describes the skipped end of files; undefined if nothing is skipped. */
export function footerOf(dialect: Dialect): string | undefined {
  const rows = Number(itemOf(dialect, "skip_footer_rows"));
  if (rows === 0) return undefined;
  const values = itemOf(dialect, "footer_values");
  if (!Array.isArray(values)) return `the last ${counted(rows, "row")} of each file skipped`;
  const marks = footerMarks(values.map(String));
  return marks === "" ? "empty last rows skipped" : `last rows starting with ${marks} skipped`;
}
