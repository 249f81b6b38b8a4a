/** Rules of the service. Generated; after a change of them: `LAKEMILL_WRITE_DOCS=1 scripts/test generated_`. */

/** The largest upload, in bytes. */
export const UPLOAD_BYTES_MAX = 104857600;

/** The longest key of an object, in bytes. */
export const KEY_BYTES_MAX = 1024;

/** Characters that keys can't contain. */
export const KEY_FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/** The file name of a pipeline's config. */
export const CONFIG_FILE = "pipeline.json";

/** The longest slug or dashboard name. */
export const SLUG_CHARACTERS_MAX = 63;

/** The first character of a slug. */
export const SLUG_START = /^[0-9a-z]/;

/** A character of a slug. */
export const SLUG_CHARACTER = /^[\-0-9_a-z]$/;

/** A table name. */
export const TABLE_NAME = /^[a-z][0-9_a-z]{0,62}$/;

/** The longest column name, in bytes. */
export const COLUMN_NAME_BYTES_MAX = 128;

/** Types of columns without parameters. */
export const COLUMN_TYPES = [
  "boolean",
  "int8",
  "int16",
  "int32",
  "int64",
  "uint8",
  "uint16",
  "uint32",
  "uint64",
  "float32",
  "float64",
  "string",
  "date",
  "time",
  "timestamp",
  "timestamptz",
  "uuid",
  "json",
] as const;

/** Endings of CSVs. */
export const CSV_ENDINGS = [
  ".csv",
  ".csv.gz",
  ".csv.zst",
] as const;

/** Endings of delimited text. */
export const TEXT_ENDINGS = [
  ".csv",
  ".tsv",
  ".tab",
  ".txt",
  ".psv",
  ".dat",
] as const;

/** Endings of compressed sources. */
export const COMPRESSION_ENDINGS = [
  ".gz",
  ".zst",
] as const;

/** Stands for null in partition paths. */
export const PARTITION_NULL = "__HIVE_DEFAULT_PARTITION__";

/** Characters that partition paths escape. */
export const PARTITION_ESCAPED = /[\u0000-\u001f"#%'*\/:=?\[-\^{\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Kinds of panels. */
export const PANEL_KINDS = [
  "area",
  "bar",
  "heatmap",
  "kpi",
  "line",
  "markdown",
  "pie",
  "pivot",
  "scatter",
  "table",
] as const;

/** The least height of a panel, in CSS pixels. */
export const PANEL_HEIGHT_PX_MIN = 40;

/** The greatest height of a panel, in CSS pixels. */
export const PANEL_HEIGHT_PX_MAX = 4000;

/** Columns of a dashboard's grid. */
export const GRID_COLUMNS = 12;
