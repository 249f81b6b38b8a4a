//! PipelineConfig version 1 as people write it, and its JSON Schema.
//!
//! Invariant: the schema is derived from these types, so the published schema, the editor's completion and the
//! validation can't drift apart. Must not: be read by serde alone; [`super::validate::parse`] is the entry point, since
//! here every field has a default, so that all problems of a document can be reported.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::choices::*;
use super::readers::NAMES;
use super::types::DataType;
use crate::domain::limits::*;

/// The version of PipelineConfig that this program reads.
pub const VERSION: u32 = 1;

/// Where the schema is served.
pub const SCHEMA_PATH: &str = "/schemas/pipeline.json";

/// Everything that a pipeline does: which CSV files of the lake become which tables of the warehouse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "PipelineConfig", extend("required" = ["version", "mappings"]))]
pub struct PipelineDocument {
    /// Where an editor finds this schema; not read.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The version of this format: 1.
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    /// What people call the pipeline; at most 200 characters.
    #[schemars(length(max = TITLE_CHARS_MAX))]
    pub title: String,
    /// What it is for; at most 10,000 characters.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    pub description: String,
    /// Whether new files in the lake start a run automatically.
    pub auto_run: bool,
    /// The events that send notifications, if the installation has targets for them. Default: all. `[]`: none.
    #[schemars(extend("uniqueItems" = true))]
    pub notify: Vec<NotifyDocument>,
    /// The tables, one mapping each.
    #[schemars(length(max = MAPPINGS_MAX))]
    pub mappings: Vec<MappingDocument>,
}

impl Default for PipelineDocument {
    fn default() -> Self {
        Self {
            schema: None,
            version: VERSION,
            title: String::new(),
            description: String::new(),
            auto_run: true,
            notify: super::NotifyEvent::ALL.map(NotifyDocument::from).to_vec(),
            mappings: Vec::new(),
        }
    }
}

/// How one table is made of CSV files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["table", "files", "columns"]))]
pub struct MappingDocument {
    /// The table's name: 1 to 63 of a-z, 0-9 and `_`, starting with a letter. Unique in the pipeline.
    #[schemars(length(min = 1, max = TABLE_NAME_BYTES_MAX), pattern("^[a-z][a-z0-9_]*$"))]
    pub table: String,
    /// Globs of the source files, relative to the pipeline's folder of the lake: `*` and `?` stay within a folder,
    /// `**` crosses folders, `[ab]` and `{a,b}` are choices. A file that matches a glob that starts with `!` is left
    /// out. Files that end in `.gz` or `.zst` are decompressed.
    #[schemars(length(min = 1, max = GLOBS_MAX), inner(length(min = 1)), extend("examples" = [["trips/**/*.csv", "trips/**/*.csv.gz"]]))]
    pub files: Vec<String>,
    /// How the bytes of a file become records.
    pub csv: CsvDocument,
    /// How files of another format are read. A file belongs to the first entry with a glob that matches it.
    #[schemars(length(max = VARIANTS_MAX))]
    pub variants: Vec<VariantDocument>,
    /// The table's columns, in their order.
    #[schemars(length(min = 1, max = COLUMNS_MAX))]
    pub columns: Vec<ColumnDocument>,
    /// SQL over the columns; a row for which it is false or null is left out (`rows_filtered`).
    #[serde(rename = "where")]
    #[schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("examples" = ["fare >= 0"]))]
    pub filter: Option<String>,
    /// What must be true of every row.
    #[schemars(length(max = CHECKS_MAX))]
    pub checks: Vec<CheckDocument>,
    /// How to treat columns of a file that the config doesn't name.
    pub extra_columns: ExtraColumnsDocument,
    /// How to treat columns of the config that a file doesn't have.
    pub missing_columns: MissingColumnsDocument,
    /// How to treat an empty file (0 bytes) where a header is expected.
    pub empty_files: EmptyFilesDocument,
    /// How to treat a file that has a column twice.
    pub duplicate_columns: DuplicateColumnsDocument,
    /// How many rejected rows a run tolerates: more than max(`max_rows`, `max_ratio` × rows read) fail it.
    pub rejects: RejectsDocument,
    /// The partition columns, from the outermost folder in. A column's name alone partitions by its value.
    #[schemars(length(max = PARTITION_COLUMNS_MAX))]
    pub partition_by: Vec<PartitionDocument>,
    /// Columns that the rows of a segment are sorted by, ascending, nulls last. A file has one segment or several, of about
    /// `parquet.tail_text_bytes` of CSV text each. Rows that are equal in these columns, and all rows if it is empty, are
    /// in the order of their sources.
    #[schemars(length(max = SORT_COLUMNS_MAX))]
    pub sort_by: Vec<String>,
    /// How to treat rows whose CSV was removed from the lake.
    pub when_removed: WhenRemovedDocument,
    /// How long the files that a run replaced stay, so that the table can be read as it was (`as_of`): a number with `s`,
    /// `m`, `h` or `d`, at most `3650d`. `0s`: they are deleted once the run has published. Default: `0s`; with `publish`, `1h`.
    #[schemars(schema_with = "duration")]
    pub keep_history: Option<DurationText>,
    /// How long the table may go without new rows before a notification says that its source is silent: a number with `s`, `m`,
    /// `h` or `d`, at least `1m` and at most `3650d`. Default: any time.
    #[schemars(schema_with = "duration")]
    pub freshness: Option<DurationText>,
    /// The table formats under which other engines see each version of the table as a whole.
    #[schemars(length(max = 2), extend("uniqueItems" = true))]
    pub publish: Vec<TableFormatDocument>,
    /// How the Parquet files are written.
    pub parquet: ParquetDocument,
}

/// Files of the table whose format differs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["files"]))]
pub struct VariantDocument {
    /// Globs like the mapping's `files`, among whose files they choose.
    #[schemars(length(min = 1, max = GLOBS_MAX), inner(length(min = 1)), extend("examples" = [["trips/2024-02*.csv"]]))]
    pub files: Vec<String>,
    /// How the bytes of these files become records, instead of the mapping's `csv`.
    pub csv: CsvDocument,
    /// Columns that these files write differently. The others are read as the mapping's `columns` say; if only one of the
    /// two formats has a header, by their name or their position.
    #[schemars(length(max = COLUMNS_MAX))]
    pub columns: Vec<VariantColumnDocument>,
}

/// How the files of a variant write a column, instead of the same fields of the mapping's column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub struct VariantColumnDocument {
    /// The column's name in the table.
    #[schemars(length(min = 1, max = COLUMN_NAME_BYTES_MAX))]
    pub name: String,
    /// As `from` of a column.
    pub from: Option<FromDocument>,
    /// As `formats` of a column.
    #[schemars(length(max = FORMATS_MAX), inner(length(min = 1)))]
    pub formats: Vec<String>,
    /// As `number_format` of a column; its defaults come from the variant's `csv`.
    pub number_format: Option<NumberFormatDocument>,
    /// As `timezone` of a column.
    #[schemars(length(min = 1))]
    pub timezone: Option<String>,
}

impl VariantColumnDocument {
    /// The mapping's column with these fields.
    pub fn of(&self, column: &ColumnDocument) -> ColumnDocument {
        ColumnDocument {
            from: self.from.clone(),
            formats: self.formats.clone(),
            number_format: self.number_format.clone(),
            timezone: self.timezone.clone(),
            ..column.clone()
        }
    }
}

/// A duration as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

/// The dialect of a mapping's files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CsvDocument {
    /// What separates cells: 1 to 8 bytes, without a line break or the quote. A tab is `"\t"`.
    #[schemars(length(min = 1, max = DELIMITER_BYTES_MAX))]
    pub delimiter: String,
    /// The byte around cells that hold delimiters or line breaks; null: cells are never quoted.
    #[schemars(length(min = 1, max = 1))]
    pub quote: Option<String>,
    /// How to treat a quote in the middle of a cell.
    pub quotes: QuotesDocument,
    /// The byte that makes the next one plain text within quotes; null: a quote within quotes is doubled.
    #[schemars(length(min = 1, max = 1))]
    pub escape: Option<String>,
    /// Whether the first record holds the names of the columns.
    pub header: bool,
    /// Cells of a record where there is no header; null: as many as the columns take by position. Give it where files
    /// have cells after the last column.
    #[schemars(range(min = 1, max = WIDTH_MAX))]
    pub width: Option<u64>,
    /// Lines before the header (or, without one, before the first record) that are not CSV; 0 to 100,000.
    #[schemars(range(max = SKIP_ROWS_MAX))]
    pub skip_rows: u64,
    /// Records between the header and the data, such as a line of units; 0 to 100,000. Needs a header.
    #[schemars(range(max = SKIP_ROWS_MAX))]
    pub skip_rows_after_header: u64,
    /// Records at the end that are not data, such as totals; 0 to 1,000. With `footer_values`, the most that are skipped.
    #[schemars(range(max = SKIP_FOOTER_ROWS_MAX))]
    pub skip_footer_rows: u64,
    /// What marks a footer, such as `Total`: a record at the end is skipped only if its first cell that isn't empty has
    /// one of these values (without regard to case; a `*` at the end stands for any text), or if all its cells are empty.
    /// null: the last `skip_footer_rows` records are skipped, whatever they hold.
    #[schemars(length(max = TOKENS_MAX))]
    pub footer_values: Option<Vec<String>>,
    /// What ends a record.
    pub record_terminator: RecordTerminatorDocument,
    /// How to treat empty lines. Those before the header are always skipped.
    pub blank_lines: BlankLinesDocument,
    /// A line that starts with this byte is skipped; null: there are no comments.
    #[schemars(length(min = 1, max = 1))]
    pub comment: Option<String>,
    /// The files' encoding, as a label of the WHATWG Encoding Standard. A byte order mark in a file wins over it.
    #[schemars(length(min = 1), extend("examples" = ["utf-8", "windows-1252", "utf-16le", "shift_jis"]))]
    pub encoding: String,
    /// Cells that mean null, compared exactly.
    #[schemars(length(max = TOKENS_MAX))]
    pub null_values: Vec<String>,
    /// Whether a quoted cell can mean null.
    pub quoted_nulls: bool,
    /// Whether blanks around an unquoted cell are dropped before it is looked at.
    pub trim: bool,
    /// The byte before the fraction of a number.
    #[schemars(length(min = 1, max = 1))]
    pub decimal: String,
    /// The byte between groups of three digits of a number; null: no separator.
    #[schemars(length(min = 1, max = 1))]
    pub thousands: Option<String>,
    /// Cells that mean true, compared exactly.
    #[schemars(length(min = 1, max = TOKENS_MAX))]
    pub true_values: Vec<String>,
    /// Cells that mean false, compared exactly.
    #[schemars(length(min = 1, max = TOKENS_MAX))]
    pub false_values: Vec<String>,
    /// How to treat records with more or fewer cells than columns.
    pub ragged_rows: RaggedRowsDocument,
    /// The longest record in bytes, 1,024 to 67,108,864; a longer one is rejected.
    #[schemars(range(min = RECORD_BYTES_MIN, max = RECORD_BYTES_MAX))]
    pub record_bytes_max: u64,
}

impl Default for CsvDocument {
    fn default() -> Self {
        Self {
            delimiter: ",".into(),
            quote: Some("\"".into()),
            quotes: QuotesDocument::default(),
            escape: None,
            header: true,
            width: None,
            skip_rows: 0,
            skip_rows_after_header: 0,
            skip_footer_rows: 0,
            footer_values: None,
            record_terminator: RecordTerminatorDocument::default(),
            blank_lines: BlankLinesDocument::default(),
            comment: None,
            encoding: "utf-8".into(),
            null_values: vec![String::new()],
            quoted_nulls: false,
            trim: false,
            decimal: ".".into(),
            thousands: None,
            true_values: vec!["true".into()],
            false_values: vec!["false".into()],
            ragged_rows: RaggedRowsDocument::default(),
            record_bytes_max: RECORD_BYTES_DEFAULT,
        }
    }
}

/// One column of a table: read from the files, or computed by `expr`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name", "type"]))]
pub struct ColumnDocument {
    /// The column's name: 1 to 128 bytes of printable text, unique in the table without regard to case.
    #[schemars(length(min = 1, max = COLUMN_NAME_BYTES_MAX))]
    pub name: String,
    /// Where its values come from: a name in the header, a list of names of which the first that the header has is
    /// taken, or, where there is no header, a position counted from 0. Names are compared without regard to case.
    /// Default: its own name; where there is no header, its own position among the columns without `expr` and `from_path`.
    pub from: Option<FromDocument>,
    /// Its type: `boolean`, `int8` to `int64`, `uint8` to `uint64`, `float32`, `float64`, `decimal(p,s)` with
    /// 1 ≤ p ≤ 38 and 0 ≤ s ≤ p, `string`, `date`, `time`, `timestamp` (microseconds, no zone), `timestamptz` (UTC),
    /// `uuid` or `json`.
    #[serde(rename = "type")]
    #[schemars(
        pattern(type_pattern()),
        extend("examples" = type_examples())
    )]
    pub ty: String,
    /// A part of the path of the CSV, instead of `from`: a pattern in which `{}` is the value and `*` any text, or a list of
    /// texts, of which the longest that the path contains is the value. The path is relative to the pipeline's folder and
    /// without the file's ending; a pattern without `/` is that of the file's name. Case doesn't matter.
    pub from_path: Option<FromPathDocument>,
    /// SQL that computes it from the columns before it, one row at a time; excludes `from`, `from_path`, `formats`,
    /// `number_format` and `timezone`.
    #[schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("examples" = ["CASE WHEN fare < 10 THEN 'low' ELSE 'high' END"]))]
    pub expr: Option<String>,
    /// Patterns of dates and times: strftime as the chrono library has it (`%.f`: a fraction of any
    /// length with its dot, `%f`: the digits of one). Numbers that adjoin each other, as in `%Y%m%d`, need all their
    /// digits. By one without a time of day, a timestamp is midnight. Or `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns`
    /// (time since 1970 in UTC), `excel` (a serial date of Excel's 1900 system) and `iso` (ISO 8601, beside others). For
    /// `date`, `time`, `timestamp` and `timestamptz`; none: ISO 8601.
    #[schemars(length(max = FORMATS_MAX), inner(length(min = 1)), extend("examples" = [["%Y-%m-%d %H:%M:%S"], ["epoch_ms"]]))]
    pub formats: Vec<String>,
    /// How numbers are written: separators, currency signs, percent signs, negatives. For integers, floats and decimals;
    /// none: as `csv.decimal` and `csv.thousands` say, without signs.
    pub number_format: Option<NumberFormatDocument>,
    /// For `timestamptz`: the IANA zone of values that carry no offset; none: UTC.
    #[schemars(length(min = 1), extend("examples" = ["America/New_York"]))]
    pub timezone: Option<String>,
    /// Whether it may be null; a null in a column that may not be rejects the row.
    pub nullable: bool,
    /// How to treat a row whose cell can't be parsed as the type, or whose `expr` fails.
    pub on_error: OnErrorDocument,
}

impl Default for ColumnDocument {
    fn default() -> Self {
        Self {
            name: String::new(),
            from: None,
            ty: String::new(),
            from_path: None,
            expr: None,
            formats: Vec::new(),
            number_format: None,
            timezone: None,
            nullable: true,
            on_error: OnErrorDocument::default(),
        }
    }
}

/// How the numbers of a column are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NumberFormatDocument {
    /// The character before the fraction. Default: `.` where `thousands` is given, otherwise `csv.decimal`.
    #[schemars(length(min = 1, max = 1))]
    pub decimal: Option<String>,
    /// The character between groups of three digits. A blank stands for all of: blank, no-break, narrow no-break and thin
    /// space; an apostrophe for `'` and `’`. Default: none where `decimal` is given, otherwise `csv.thousands`.
    #[schemars(length(min = 1, max = 1))]
    pub thousands: Option<String>,
    /// Signs of the column's currency, before or after a number, and dropped: list only signs of one currency. Longer ones
    /// are tried first. A value may have none.
    #[schemars(length(max = CURRENCIES_MAX), inner(length(min = 1)), extend("examples" = [["$"], ["€", "EUR"]]))]
    pub currency: Vec<String>,
    /// Whether values are percentages: `12.5%` is 0.125, and a value without `%` is rejected. For floats and decimals.
    pub percent: bool,
    /// How negative numbers are written. A leading minus sign is always accepted.
    pub negative: NegativeDocument,
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FromDocument {
    /// A name in the header.
    Name(String),
    /// Names in order of preference.
    Names(#[schemars(length(min = 1, max = ALIASES_MAX))] Vec<String>),
    /// A position, counted from 0.
    Position(#[schemars(range(max = SOURCE_POSITION_MAX))] u64),
}

/// What a column takes from the path of a CSV.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FromPathDocument {
    /// A pattern with one `{}`.
    Pattern(
        #[schemars(length(min = 2, max = PATH_PATTERN_BYTES_MAX), extend("examples" = ["sales_{}", "region={}/*"]))]
        String,
    ),
    /// The values.
    OneOf(
        #[schemars(length(min = 1, max = PATH_TEXTS_MAX), inner(length(min = 1, max = PATH_PATTERN_BYTES_MAX)))]
        Vec<String>,
    ),
}

impl ColumnDocument {
    /// Whether its values are read from the records of the files.
    pub fn is_read(&self) -> bool {
        self.expr.is_none() && self.from_path.is_none()
    }
}

/// Something that must be true of every row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name", "assert"]))]
pub struct CheckDocument {
    /// The check's name: 1 to 128 bytes of printable text, unique in the mapping.
    #[schemars(length(min = 1, max = COLUMN_NAME_BYTES_MAX))]
    pub name: String,
    /// SQL over the columns; a row for which it is false or null fails the check.
    #[schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("examples" = ["fare < 5000"]))]
    pub assert: String,
    /// How to treat a row that fails the check.
    pub on_fail: OnFailDocument,
}

/// How many rejected rows a run tolerates.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RejectsDocument {
    /// Rejected rows that are allowed in any case.
    pub max_rows: u64,
    /// Allowed ratio of rejected rows to rows read, 0 to 1; at 1, any number is allowed.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_ratio: f64,
}

/// One level of partitioning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PartitionDocument {
    /// A column, by its value.
    Column(String),
    Field(PartitionFieldDocument),
}

/// One level of partitioning, spelt out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["column"]))]
pub struct PartitionFieldDocument {
    /// The column.
    pub column: String,
    /// The transform of its values.
    pub transform: TransformDocument,
    /// The name in the path. Default: the column's for `identity`, else `<column>_<transform>`.
    #[schemars(length(min = 1, max = COLUMN_NAME_BYTES_MAX))]
    pub name: Option<String>,
    /// How to treat texts that readers with type inference on paths read as another value, such as `01` for 1.
    pub inferable_texts: InferableTextsDocument,
}

/// How the Parquet files are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParquetDocument {
    /// How pages are compressed.
    pub compression: CompressionDocument,
    /// How values are written in pages.
    pub encodings: EncodingsDocument,
    /// Programs that must read the table. Validation warns of each column and option that one of them refuses or reads
    /// differently; what is written stays the same.
    #[schemars(schema_with = "reader_names")]
    pub readers: Vec<String>,
    /// For `zstd`: 1 (fast) to 22 (small); default 1.
    #[schemars(range(min = 1, max = 22))]
    pub compression_level: Option<i32>,
    /// Rows of a row group, 1,024 to 16,777,216.
    #[schemars(range(min = ROW_GROUP_ROWS_MIN, max = ROW_GROUP_ROWS_MAX))]
    pub row_group_rows: u64,
    /// A file is closed at the first end of a row group at or past this many bytes, 65,536 to 4,294,967,296.
    #[schemars(range(min = FILE_BYTES_MIN, max = FILE_BYTES_MAX))]
    pub file_bytes_max: u64,
    /// Bytes of CSV text in a file on average, 1 to 1,099,511,627,776. A run replaces whole files.
    #[schemars(range(min = 1, max = TEXT_BYTES_MAX))]
    pub file_text_bytes: u64,
    /// The same for the last files of a partition, which new CSVs extend; at most `file_text_bytes`. Smaller ones make adding
    /// a CSV cheaper, and give the partition more files and row groups.
    #[schemars(range(min = 1, max = TEXT_BYTES_MAX))]
    pub tail_text_bytes: u64,
}

impl Default for ParquetDocument {
    fn default() -> Self {
        Self {
            compression: CompressionDocument::default(),
            encodings: EncodingsDocument::default(),
            readers: Vec::new(),
            compression_level: None,
            row_group_rows: ROW_GROUP_ROWS_DEFAULT,
            file_bytes_max: FILE_BYTES_DEFAULT,
            file_text_bytes: FILE_TEXT_BYTES_DEFAULT,
            tail_text_bytes: TAIL_TEXT_BYTES_DEFAULT,
        }
    }
}

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionDocument {
    /// Zstandard: small and fast.
    #[default]
    Zstd,
    /// Snappy.
    Snappy,
    /// LZ4, without framing.
    Lz4,
    /// Not at all.
    None,
}

/// The published JSON Schema of PipelineConfig (draft 2020-12), without references, so that it has the same structure as
/// a document.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<PipelineDocument>().to_value();
        drop_defaults_of_required(&mut schema);
        if let Value::Object(root) = &mut schema {
            root.insert("$id".into(), SCHEMA_PATH.into());
        }
        schema
    });
    &SCHEMA
}

fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^[0-9]{1,9}[smhd]$", "examples": ["7d", "12h"] })
}

fn reader_names(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = NAMES.iter().map(|named| named.name).collect();
    json_schema!({ "type": "array", "items": { "enum": names }, "maxItems": READERS_MAX, "examples": [["spark-3.5", "polars-2.1"]] })
}

fn type_pattern() -> String {
    let names: Vec<&str> = DataType::PLAIN.iter().map(|(name, _)| *name).collect();
    format!(r"^({}|decimal\([ 0-9]+,[ 0-9]+\))$", names.join("|"))
}

fn type_examples() -> Vec<&'static str> {
    DataType::PLAIN.iter().map(|(name, _)| *name).chain(["decimal(10,2)"]).collect()
}

/// Removes the defaults of required fields, which exist for serde only.
fn drop_defaults_of_required(schema: &mut Value) {
    let required: Vec<String> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    for name in required {
        if let Some(Value::Object(property)) = schema.pointer_mut(&format!("/properties/{name}")) {
            property.remove("default");
        }
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(drop_defaults_of_required),
        Value::Array(items) => items.iter_mut().for_each(drop_defaults_of_required),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
