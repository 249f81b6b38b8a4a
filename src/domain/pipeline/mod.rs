//! A pipeline's config: the document ([`document`]), its rules ([`validate`]), and the checked form of the rest of the
//! program (here).
//!
//! Invariant: a [`Pipeline`] exists only if its document had no problem.

mod choices;
pub mod document;
pub mod globs;
pub mod named_format;
mod path_part;
pub mod readers;
pub mod renames;
pub mod types;
pub mod validate;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::limits::RECORD_BYTES_DEFAULT;
use super::name::{ColumnName, TableName};
use super::table_log::cuts::CutTargets;
use super::zones::Zone;
use globs::SourceGlobs;
pub use path_part::{PathPart, PathPattern};
use types::DataType;

/// A checked PipelineConfig.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    pub title: String,
    pub description: String,
    pub auto_run: bool,
    /// The events that send notifications.
    pub notify: BTreeSet<NotifyEvent>,
    pub mappings: Vec<Mapping>,
}

/// The events of a pipeline that send notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotifyEvent {
    RunFailed,
    Recovered,
    RowsRejected,
    Drift,
    SourceSilent,
    JobStuck,
}

impl NotifyEvent {
    pub const ALL: [Self; 6] =
        [Self::RunFailed, Self::Recovered, Self::RowsRejected, Self::Drift, Self::SourceSilent, Self::JobStuck];
}

/// The mapping from CSV files to one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    pub table: TableName,
    /// Globs relative to `pipelines/<slug>/` of the lake; at least one.
    pub files: Vec<String>,
    pub csv: Dialect,
    /// Files that are read differently.
    pub variants: Variants,
    /// At least one; names unique without regard to case.
    pub columns: Vec<Column>,
    /// Rows for which this is false or null are filtered.
    pub filter: Option<String>,
    pub checks: Vec<Check>,
    pub extra_columns: ExtraColumns,
    pub missing_columns: MissingColumns,
    pub empty_files: EmptyFiles,
    pub duplicate_columns: DuplicateColumns,
    pub rejects: RejectLimits,
    pub partition_by: Vec<PartitionField>,
    /// Indices in `columns`; ascending, nulls last. Never an identity partition column, which isn't in the files.
    pub sort_by: Vec<usize>,
    pub when_removed: WhenRemoved,
    /// How long files that a commit replaced stay.
    pub keep_history: Duration,
    /// How long the table may go without new rows.
    pub freshness: Option<Duration>,
    /// The table formats under which other engines read the table as a whole.
    pub publish: BTreeSet<TableFormat>,
    pub parquet: ParquetOptions,
    /// JSON, members sorted: everything of the mapping that can change the table's bytes, with defaults filled in. The
    /// `files`, `variants`, `empty_files`, `when_removed`, `keep_history`, `freshness`, `publish`, the limits of rejects and checks that only
    /// warn don't belong to it.
    pub canonical: String,
}

/// How some files of a mapping are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Globs relative to the pipeline's folder of the lake; at least one.
    pub files: Vec<String>,
    pub csv: Dialect,
    /// The mapping's columns, with this variant's sources and formats.
    pub columns: Vec<Column>,
    /// Identifies how it reads: a digest of all that differs from the mapping.
    pub id: String,
}

/// The variants of a mapping.
#[derive(Debug, Clone, Default)]
pub struct Variants {
    all: Vec<Variant>,
    globs: Option<Arc<SourceGlobs>>,
}

impl Variants {
    /// # Errors
    /// A glob that is invalid.
    pub fn new(all: Vec<Variant>) -> Result<Self, globset::Error> {
        let globs = match all.is_empty() {
            true => None,
            false => Some(Arc::new(SourceGlobs::compile(all.iter().map(|variant| &variant.files))?)),
        };
        Ok(Self { all, globs })
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Variant> {
        self.all.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The position of the first variant with a glob that matches a source.
    fn position(&self, source: &str) -> Option<usize> {
        self.globs.as_ref().and_then(|globs| globs.reading(source).0.first().copied())
    }
}

impl PartialEq for Variants {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

/// How the files of a mapping, or of one of its variants, are read.
#[derive(Debug, Clone, Copy)]
pub struct SourceFormat<'a> {
    /// The position of the variant; `None`: the mapping's own format.
    pub variant: Option<usize>,
    /// The variant's `id`.
    pub id: Option<&'a str>,
    pub csv: &'a Dialect,
    pub columns: &'a [Column],
}

/// How the bytes of a source become records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// 1 to 8 bytes.
    pub delimiter: Vec<u8>,
    pub quote: Option<u8>,
    pub quotes: Quotes,
    /// `None`: a quote within quotes is doubled.
    pub escape: Option<u8>,
    pub header: bool,
    /// Cells of a record where there is no header; `None`: those of the first record.
    pub width: Option<usize>,
    /// Physical lines before the header (or the first record) that are not CSV.
    pub skip_rows: u64,
    /// Records between the header and the data.
    pub skip_rows_after_header: u64,
    /// Records at the end that are not data.
    pub skip_footer_rows: u64,
    /// Values that mark a footer; `None`: every record at the end is one.
    pub footer_values: Option<Vec<String>>,
    pub record_terminator: RecordTerminator,
    pub blank_lines: BlankLines,
    /// A line that starts with this byte is skipped.
    pub comment: Option<u8>,
    /// Label of a WHATWG encoding; a byte order mark in the source wins over it.
    pub encoding: &'static encoding_rs::Encoding,
    pub null_values: Vec<String>,
    /// Whether a quoted cell can be a null token.
    pub quoted_nulls: bool,
    /// Whether ASCII white space around an unquoted cell (before null tokens and parsing) is dropped.
    pub trim: bool,
    pub decimal: u8,
    pub thousands: Option<u8>,
    pub true_values: Vec<String>,
    pub false_values: Vec<String>,
    pub ragged_rows: RaggedRows,
    /// Longest record in bytes.
    pub record_bytes_max: u64,
}

/// The defaults of `csv`.
impl Default for Dialect {
    fn default() -> Self {
        Self {
            delimiter: b",".to_vec(),
            quote: Some(b'"'),
            quotes: Quotes::Strict,
            escape: None,
            header: true,
            width: None,
            skip_rows: 0,
            skip_rows_after_header: 0,
            skip_footer_rows: 0,
            footer_values: None,
            record_terminator: RecordTerminator::Auto,
            blank_lines: BlankLines::Skip,
            comment: None,
            encoding: encoding_rs::UTF_8,
            null_values: vec![String::new()],
            quoted_nulls: false,
            trim: false,
            decimal: b'.',
            thousands: None,
            true_values: vec!["true".to_owned()],
            false_values: vec!["false".to_owned()],
            ragged_rows: RaggedRows::Reject,
            record_bytes_max: RECORD_BYTES_DEFAULT,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// A quote within an unquoted cell, or text after a closing quote, rejects the row.
    Strict,
    /// It is text.
    Lenient,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordTerminator {
    /// LF or CRLF.
    Auto,
    /// A lone CR.
    Cr,
}

/// How to treat an empty line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlankLines {
    /// It is not a record.
    Skip,
    /// It is a row of nulls.
    Null,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaggedRows {
    Reject,
    /// Short rows are filled with nulls, long ones cut.
    Pad,
    Fail,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: ColumnName,
    pub ty: DataType,
    pub source: ColumnSource,
    pub nullable: bool,
    pub on_error: OnError,
    /// strftime patterns as `chrono` has them, or names ([`named_format`]); empty: ISO 8601.
    pub formats: Vec<String>,
    /// `None`: the dialect's separators, and nothing around the digits but a sign.
    pub number_format: Option<NumberFormat>,
    /// The zone of values without an offset, for `timestamptz`; `None`: UTC.
    pub timezone: Option<Zone>,
}

/// How a column writes numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberFormat {
    pub decimal: char,
    /// A blank stands for all blanks, an apostrophe for all apostrophes.
    pub thousands: Option<char>,
    /// The longest first.
    pub currency: Vec<String>,
    /// Every value has a percent sign, and is divided by 100.
    pub percent: bool,
    pub negative: Negative,
}

/// How a column writes negative numbers, besides a leading minus sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Negative {
    Minus,
    Parentheses,
    TrailingMinus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSource {
    /// Names to look for in the header, in order of preference, compared without regard to case.
    Header(Vec<String>),
    /// 0-based, where there is no header.
    Position(usize),
    /// The same for all rows of a file: a part of its path.
    Path(PathPart),
    /// Scalar SQL over the columns before it.
    Expr(String),
}

/// How to treat a row with a cell that doesn't fit its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Reject,
    /// The cell becomes null (and is then refused if the column isn't nullable).
    Null,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// A row for which this is false or null fails the check.
    pub assert: String,
    pub on_fail: OnFail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFail {
    Reject,
    Warn,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraColumns {
    Ignore,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingColumns {
    Fail,
    Null,
}

/// Sources without any content, where a header is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyFiles {
    Load,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateColumns {
    Fail,
    First,
}

/// A format of tables that other engines read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFormat {
    /// Delta Lake: a log beside the data files.
    Delta,
    /// Apache Iceberg: metadata beside the data files.
    Iceberg,
}

/// What happens to the rows of a source that leaves the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenRemoved {
    RemoveRows,
    /// They stay, and the source is archived.
    KeepRows,
}

/// More rejects than max(`max_rows`, `max_ratio` × rows read) fail the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RejectLimits {
    pub max_rows: u64,
    /// 0 to 1.
    pub max_ratio: f64,
}

impl RejectLimits {
    /// Whether `rejected` rows out of `read` are within the limits.
    pub fn allow(&self, rejected: u64, read: u64) -> bool {
        // A quotient, since the nearest number to 29/100 is what `0.29` reads as; 0.29 * 100 is a little less than 29.
        rejected <= self.max_rows || rejected as f64 / read as f64 <= self.max_ratio
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// Position in `columns`.
    pub column: usize,
    pub transform: Transform,
    /// The name in the path. For an identity partition the column itself leaves the file.
    pub name: ColumnName,
    pub inferable_texts: InferableTexts,
}

/// What happens to texts that readers with type inference misread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InferableTexts {
    Reject,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    Identity,
    Year,
    Month,
    Day,
    Hour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParquetOptions {
    pub compression: Compression,
    pub encodings: Encodings,
    pub row_group_rows: u64,
    /// A file is closed at the first row group end at or past this size.
    pub file_bytes_max: u64,
    /// Where segments and files of a partition end.
    pub cuts: CutTargets,
}

/// How values are written in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encodings {
    /// Text without a dictionary is `PLAIN`.
    Compatible,
    /// It is `DELTA_LENGTH_BYTE_ARRAY`.
    Compact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Snappy,
    Lz4,
    /// Level 1 to 22.
    Zstd(i32),
}

impl Mapping {
    /// Indices of the columns in the files: all but identity partition columns.
    pub fn stored_columns(&self) -> Vec<usize> {
        let taken = |i: usize| self.partition_by.iter().any(|p| p.transform == Transform::Identity && p.column == i);
        (0..self.columns.len()).filter(|&i| !taken(i)).collect()
    }

    /// Whether rows need SQL.
    pub fn has_expressions(&self) -> bool {
        self.filter.is_some()
            || !self.checks.is_empty()
            || self.columns.iter().any(|c| matches!(c.source, ColumnSource::Expr(_)))
    }

    /// Whether values depend on the time-zone database, expressions aside.
    pub fn reads_zones(&self) -> bool {
        let mut columns = self.columns.iter().chain(self.variants.iter().flat_map(|variant| &variant.columns));
        columns.any(|c| c.timezone.is_some() || c.formats.iter().any(|format| format.contains("%Z")))
    }

    /// How a source is read. `source`: relative to the pipeline's folder of the lake.
    pub fn format_of(&self, source: &str) -> SourceFormat<'_> {
        self.format_at(self.variants.position(source))
    }

    /// The format of a variant; the mapping's own for `None`.
    pub fn format_at(&self, variant: Option<usize>) -> SourceFormat<'_> {
        match variant.and_then(|at| self.variants.all.get(at)) {
            Some(found) => SourceFormat { variant, id: Some(&found.id), csv: &found.csv, columns: &found.columns },
            None => SourceFormat { variant: None, id: None, csv: &self.csv, columns: &self.columns },
        }
    }
}
