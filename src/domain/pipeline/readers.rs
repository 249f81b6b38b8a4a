//! Programs that read our Parquet files, with the types and options that each refuses or reads differently.
//!
//! Invariant: `docs/readers.md` shows this table, and `scripts/readers` reproduces it. Must not: change the files.

use std::fmt;

use super::types::DataType;
use super::{Compression, Encodings, Mapping, Transform};

/// A program that reads Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    DuckDb,
    Polars,
    PyArrow,
    ClickHouse,
    FastParquet,
    Spark,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DuckDb => "DuckDB",
            Self::Polars => "Polars",
            Self::PyArrow => "pyarrow",
            Self::ClickHouse => "ClickHouse",
            Self::FastParquet => "fastparquet",
            Self::Spark => "Spark",
        })
    }
}

/// How a reader handles a type or an option. The text gives details and follows the reader's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderSupport {
    /// Every value is right, in a wider type.
    Wider(&'static str),
    /// Every value is right, in a type that means something else.
    As(&'static str),
    /// Reading works; filters fail.
    Unfiltered(&'static str),
    /// The reader fails.
    Refuses(&'static str),
    /// The reader's process dies.
    Crashes(&'static str),
    /// Values or counts differ, without an error.
    Wrong(&'static str),
}

impl ReaderSupport {
    /// The text of the reading's cell in the table.
    pub fn cell(self) -> String {
        match self {
            Self::Wider(ty) | Self::As(ty) => format!("as `{ty}`"),
            Self::Unfiltered(_) => "ok, no filter".to_owned(),
            Self::Refuses(_) => "refuses".to_owned(),
            Self::Crashes(_) => "crashes".to_owned(),
            Self::Wrong(_) => "**wrong**".to_owned(),
        }
    }

    /// The consequence, to follow the reader's name; `None` if nothing is lost.
    pub fn consequence(self) -> Option<String> {
        match self {
            Self::Wider(_) => None,
            Self::As(ty) => Some(format!("reads it as `{ty}`")),
            Self::Unfiltered(why) => Some(format!("reads it, but can't filter by it: {why}")),
            Self::Refuses(why) => Some(format!("refuses it: {why}")),
            Self::Crashes(why) => Some(format!("crashes: {why}")),
            Self::Wrong(why) => Some(format!("reads it incorrectly: {why}")),
        }
    }
}

/// A version of a reader as it was measured.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredVersion {
    pub family: Family,
    pub version: &'static str,
    /// Besides those of every version of the family.
    findings: &'static [(&'static str, ReaderSupport)],
}

impl MeasuredVersion {
    /// Readings by the label of a [`Row`]; rows without one are read correctly.
    pub fn findings(&self) -> impl Iterator<Item = &'static (&'static str, ReaderSupport)> {
        let family: &[_] = if self.family == Family::Spark { SPARK } else { &[] };
        self.findings.iter().chain(family)
    }

    /// `None` if the row is read correctly.
    pub fn reading(&self, label: &str) -> Option<ReaderSupport> {
        self.findings().find(|(own, _)| *own == label).map(|(_, reading)| *reading)
    }
}

/// A row of the table: something that a table can hold or be written with.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub label: &'static str,
    pub subject: MappingPart,
}

/// Which part of a mapping a row applies to.
#[derive(Debug, Clone, Copy)]
pub enum MappingPart {
    /// A column of such a type, stored in the files.
    Column(fn(DataType) -> bool),
    /// The same, written with `encodings: compact`.
    CompactColumn(DataType),
    Compression(fn(Compression) -> bool),
    /// A partition whose value is text.
    TextPartition,
}

/// The node of a mapping that a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingNode {
    Column(usize),
    Encodings,
    Compression,
    Partition(usize),
}

impl Row {
    /// The nodes of `mapping` that the row is about.
    pub fn nodes(&self, mapping: &Mapping) -> Vec<MappingNode> {
        let columns = |is_meant: &dyn Fn(DataType) -> bool| -> Vec<usize> {
            mapping.stored_columns().into_iter().filter(|&i| is_meant(mapping.columns[i].ty)).collect()
        };
        match self.subject {
            MappingPart::Column(is_meant) => columns(&is_meant).into_iter().map(MappingNode::Column).collect(),
            MappingPart::CompactColumn(ty) => {
                let is_meant = mapping.parquet.encodings == Encodings::Compact && !columns(&|own| own == ty).is_empty();
                is_meant.then_some(MappingNode::Encodings).into_iter().collect()
            }
            MappingPart::Compression(is_meant) => {
                is_meant(mapping.parquet.compression).then_some(MappingNode::Compression).into_iter().collect()
            }
            MappingPart::TextPartition => {
                let is_text = |i: &usize| {
                    let field = &mapping.partition_by[*i];
                    field.transform == Transform::Identity && mapping.columns[field.column].ty == DataType::String
                };
                (0..mapping.partition_by.len()).filter(is_text).map(MappingNode::Partition).collect()
            }
        }
    }
}

macro_rules! rows {
    ($($label:literal: $subject:expr,)*) => { &[$(Row { label: $label, subject: $subject },)*] };
}

/// The rows of the table, in their order.
pub const ROWS: &[Row] = rows! {
    "boolean": MappingPart::Column(|ty| ty == DataType::Boolean),
    "int8": MappingPart::Column(|ty| ty == DataType::Int8),
    "int16": MappingPart::Column(|ty| ty == DataType::Int16),
    "int32": MappingPart::Column(|ty| ty == DataType::Int32),
    "int64": MappingPart::Column(|ty| ty == DataType::Int64),
    "uint8": MappingPart::Column(|ty| ty == DataType::UInt8),
    "uint16": MappingPart::Column(|ty| ty == DataType::UInt16),
    "uint32": MappingPart::Column(|ty| ty == DataType::UInt32),
    "uint64": MappingPart::Column(|ty| ty == DataType::UInt64),
    "float32": MappingPart::Column(|ty| ty == DataType::Float32),
    "float64": MappingPart::Column(|ty| ty == DataType::Float64),
    "decimal(9,2)": MappingPart::Column(|ty| matches!(ty, DataType::Decimal { precision: ..=9, .. })),
    "decimal(18,4)": MappingPart::Column(|ty| matches!(ty, DataType::Decimal { precision: 10..=18, .. })),
    "decimal(38,10)": MappingPart::Column(|ty| matches!(ty, DataType::Decimal { precision: 19.., .. })),
    "string": MappingPart::Column(|ty| ty == DataType::String),
    "date": MappingPart::Column(|ty| ty == DataType::Date),
    "date, years 1 to 1581": MappingPart::Column(|ty| ty == DataType::Date),
    "date, years 2263 to 9999": MappingPart::Column(|ty| ty == DataType::Date),
    "time": MappingPart::Column(|ty| ty == DataType::Time),
    "timestamp": MappingPart::Column(|ty| ty == DataType::Timestamp),
    "timestamp, years 1 to 1899": MappingPart::Column(|ty| ty == DataType::Timestamp),
    "timestamp, years 2263 to 9999": MappingPart::Column(|ty| ty == DataType::Timestamp),
    "timestamptz": MappingPart::Column(|ty| ty == DataType::TimestampTz),
    "timestamptz, years 1 to 1899": MappingPart::Column(|ty| ty == DataType::TimestampTz),
    "timestamptz, years 2263 to 9999": MappingPart::Column(|ty| ty == DataType::TimestampTz),
    "uuid": MappingPart::Column(|ty| ty == DataType::Uuid),
    "json": MappingPart::Column(|ty| ty == DataType::Json),
    "string, `encodings: compact`": MappingPart::CompactColumn(DataType::String),
    "json, `encodings: compact`": MappingPart::CompactColumn(DataType::Json),
    "string, `compression: snappy`": MappingPart::Compression(|codec| codec == Compression::Snappy),
    "string, `compression: lz4`": MappingPart::Compression(|codec| codec == Compression::Lz4),
    "string, `compression: none`": MappingPart::Compression(|codec| codec == Compression::None),
    "partition by string": MappingPart::TextPartition,
};

/// A value of `parquet.readers`: a family, and its oldest supported version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderName {
    pub name: &'static str,
    pub family: Family,
    /// The oldest supported version.
    pub floor: &'static str,
}

impl ReaderName {
    /// The measured versions that a name in `readers` stands for.
    pub fn versions(&self) -> impl Iterator<Item = &'static MeasuredVersion> {
        let (family, floor) = (self.family, numbers(self.floor));
        MEASURED.iter().filter(move |measured| measured.family == family && numbers(measured.version) >= floor)
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

macro_rules! names {
    ($($name:literal: $family:ident $floor:literal,)*) => {
        &[$(ReaderName { name: $name, family: Family::$family, floor: $floor },)*]
    };
}

/// The closed list of `parquet.readers`.
pub const NAMES: &[ReaderName] = names! {
    "duckdb-1.1": DuckDb "1.1",
    "duckdb-2.0": DuckDb "2.0",
    "polars-1.9": Polars "1.9",
    "polars-2.1": Polars "2.1",
    "pyarrow-17": PyArrow "17",
    "pyarrow-26": PyArrow "26",
    "clickhouse-24.8": ClickHouse "24.8",
    "clickhouse-26.9": ClickHouse "26.9",
    "fastparquet-2026.9": FastParquet "2026.9",
    "spark-3.3": Spark "3.3",
    "spark-3.4": Spark "3.4",
    "spark-3.5": Spark "3.5",
    "spark-4.0": Spark "4.0",
};

const SPARK_UNKNOWN: ReaderSupport =
    ReaderSupport::Refuses("a table with such a column can't be opened; declare the column `string`");
const SPARK_OLD: ReaderSupport = ReaderSupport::Refuses(
    "reading days before 15 October 1582, or moments before 1900, takes \
     `spark.sql.parquet.datetimeRebaseModeInRead = CORRECTED`",
);
const SPARK_NO_ZONE: ReaderSupport = ReaderSupport::Wrong(
    "a time without a zone is taken for UTC and shown in the session's zone; set `spark.sql.session.timeZone` to `UTC`",
);
const COMPACT: ReaderSupport =
    ReaderSupport::Refuses("it does not support DELTA_LENGTH_BYTE_ARRAY; leave `encodings` at its default");
const SPARK_LZ4: ReaderSupport = ReaderSupport::Refuses("it does not support LZ4_RAW; choose another `compression`");
const DUCKDB_NULL: ReaderSupport =
    ReaderSupport::Wrong("null reads as `__HIVE_DEFAULT_PARTITION__`, and the text `NULL` as null");
const SPARK_DELTAS: ReaderSupport = ReaderSupport::Wrong(
    "it misreads text in DELTA_LENGTH_BYTE_ARRAY; 3.5.9 and 4.0.5 read it correctly; leave `encodings` at its default",
);
const SPARK_DELTAS_FAIL: ReaderSupport = ReaderSupport::Refuses(
    "it fails on DELTA_LENGTH_BYTE_ARRAY, or misreads it; 3.5.9 and 4.0.5 read it correctly; leave `encodings` at its default",
);
const CLICKHOUSE_DATES: ReaderSupport = ReaderSupport::Refuses("days before 1900 and after 2299 are out of its range");
const CLICKHOUSE_NO_ZONE: ReaderSupport =
    ReaderSupport::Wrong("a time without a zone is shown in the session's zone; set `session_timezone` to `UTC`");
const CLICKHOUSE_JSON: ReaderSupport = ReaderSupport::Refuses(
    "its JSON type holds only objects; name the column's type, `String`, in `file(…)` or `s3(…)`",
);
const ESCAPES: ReaderSupport =
    ReaderSupport::Wrong("`%` escapes of the path are kept as text, and null reads as `__HIVE_DEFAULT_PARTITION__`");
const FAST_DELTAS: ReaderSupport = ReaderSupport::Wrong(
    "large differences between values are misread from DELTA_BINARY_PACKED, also in files of other writers",
);
const FAST_FLOATS: ReaderSupport = ReaderSupport::Wrong("null is read as NaN");
const FAST_DECIMALS: ReaderSupport =
    ReaderSupport::Wrong("it is read as a float, which rounds; declare the column `string`");
const FAST_FILTER: ReaderSupport = ReaderSupport::Unfiltered("its row filter fails where a value is null");
const FAST_YEARS: ReaderSupport = ReaderSupport::Wrong("years before 1678 and after 2262 wrap around");
const FAST_UUID: ReaderSupport = ReaderSupport::Wrong("trailing zero bytes are cut off; declare the column `string`");
const FAST_JSON: ReaderSupport =
    ReaderSupport::Wrong("documents are parsed into Python objects; declare the column `string`");
const FAST_CRASH: ReaderSupport =
    ReaderSupport::Crashes("the process is killed by a segmentation fault while it decodes DELTA_BINARY_PACKED");

/// Findings of every version of Spark.
const SPARK: &[(&str, ReaderSupport)] = &[
    ("uint8", ReaderSupport::Wider("smallint")),
    ("uint16", ReaderSupport::Wider("int")),
    ("uint32", ReaderSupport::Wider("bigint")),
    ("uint64", ReaderSupport::Wider("decimal(20,0)")),
    ("time", SPARK_UNKNOWN),
    ("uuid", SPARK_UNKNOWN),
];

macro_rules! measured {
    ($($family:ident $version:literal { $($label:literal: $reading:expr,)* })*) => {
        &[$(MeasuredVersion { family: Family::$family, version: $version, findings: &[$(($label, $reading),)*] },)*]
    };
}

/// The results of `scripts/readers`, the oldest version of a family first.
pub const MEASURED: &[MeasuredVersion] = measured! {
    DuckDb "1.1.3" {
        "partition by string": DUCKDB_NULL,
    }
    DuckDb "2.0.0" {}
    Polars "1.9.0" {
        "uuid": ReaderSupport::As("Binary"),
        "json": ReaderSupport::As("Binary"),
        "json, `encodings: compact`": ReaderSupport::As("Binary"),
    }
    Polars "2.1.0" {
        "uuid": ReaderSupport::As("Binary"),
        "json": ReaderSupport::As("Binary"),
        "json, `encodings: compact`": ReaderSupport::As("Binary"),
    }
    PyArrow "17.0.0" {
        "uuid": ReaderSupport::As("fixed_size_binary[16]"),
        "json": ReaderSupport::As("binary"),
        "json, `encodings: compact`": ReaderSupport::As("binary"),
    }
    PyArrow "26.0.1" {
        "uuid": ReaderSupport::As("fixed_size_binary[16]"),
    }
    ClickHouse "24.8.4.1" {
        "date, years 1 to 1581": CLICKHOUSE_DATES,
        "date, years 2263 to 9999": CLICKHOUSE_DATES,
        "time": CLICKHOUSE_NO_ZONE,
        "timestamp": CLICKHOUSE_NO_ZONE,
        "timestamp, years 1 to 1899": CLICKHOUSE_NO_ZONE,
        "timestamp, years 2263 to 9999": CLICKHOUSE_NO_ZONE,
        "uuid": ReaderSupport::As("FixedString(16)"),
        "partition by string": ESCAPES,
    }
    ClickHouse "26.9.2.1" {
        "time": ReaderSupport::As("DateTime64(6,UTC)"),
        "json": CLICKHOUSE_JSON,
        "json, `encodings: compact`": CLICKHOUSE_JSON,
        "partition by string": ESCAPES,
    }
    FastParquet "2026.9.0" {
        "boolean": FAST_FILTER,
        "int8": FAST_FILTER,
        "int16": FAST_FILTER,
        "int32": FAST_FILTER,
        "int64": FAST_DELTAS,
        "uint8": FAST_FILTER,
        "uint16": FAST_FILTER,
        "uint32": FAST_FILTER,
        "uint64": FAST_DELTAS,
        "float32": FAST_FLOATS,
        "float64": FAST_FLOATS,
        "decimal(9,2)": FAST_DECIMALS,
        "decimal(18,4)": FAST_CRASH,
        "decimal(38,10)": FAST_DECIMALS,
        "date": ReaderSupport::As("datetime64[ns]"),
        "date, years 1 to 1581": FAST_YEARS,
        "date, years 2263 to 9999": FAST_YEARS,
        "time": FAST_DELTAS,
        "timestamp": FAST_DELTAS,
        "timestamp, years 1 to 1899": FAST_CRASH,
        "timestamp, years 2263 to 9999": FAST_CRASH,
        "timestamptz": FAST_DELTAS,
        "timestamptz, years 1 to 1899": FAST_CRASH,
        "timestamptz, years 2263 to 9999": FAST_CRASH,
        "uuid": FAST_UUID,
        "json": FAST_JSON,
        "string, `encodings: compact`": COMPACT,
        "json, `encodings: compact`": COMPACT,
        "partition by string": ESCAPES,
    }
    Spark "3.3.4" {
        "date, years 1 to 1581": SPARK_OLD,
        "timestamp": SPARK_NO_ZONE,
        "timestamp, years 1 to 1899": SPARK_OLD,
        "timestamp, years 2263 to 9999": SPARK_NO_ZONE,
        "timestamptz, years 1 to 1899": SPARK_OLD,
        "string, `encodings: compact`": COMPACT,
        "json, `encodings: compact`": COMPACT,
        "string, `compression: lz4`": SPARK_LZ4,
    }
    Spark "3.4.4" {
        "date, years 1 to 1581": SPARK_OLD,
        "timestamptz, years 1 to 1899": SPARK_OLD,
        "string, `encodings: compact`": SPARK_DELTAS,
        "json, `encodings: compact`": SPARK_DELTAS_FAIL,
        "string, `compression: lz4`": SPARK_LZ4,
    }
    Spark "3.5.6" {
        "date, years 1 to 1581": SPARK_OLD,
        "timestamptz, years 1 to 1899": SPARK_OLD,
        "string, `encodings: compact`": SPARK_DELTAS,
        "json, `encodings: compact`": SPARK_DELTAS_FAIL,
    }
    Spark "3.5.9" {
        "date, years 1 to 1581": SPARK_OLD,
        "timestamptz, years 1 to 1899": SPARK_OLD,
    }
    Spark "4.0.0" {
        "string, `encodings: compact`": SPARK_DELTAS,
        "json, `encodings: compact`": SPARK_DELTAS_FAIL,
    }
    Spark "4.0.5" {
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_names_a_row_and_is_unique() {
        for measured in MEASURED {
            let labels: Vec<&str> = measured.findings().map(|(label, _)| *label).collect();
            for (at, label) in labels.iter().enumerate() {
                assert!(
                    ROWS.iter().any(|row| row.label == *label),
                    "{} {}: {label}",
                    measured.family,
                    measured.version
                );
                assert!(!labels[..at].contains(label), "{} {}: {label} twice", measured.family, measured.version);
            }
        }
    }

    #[test]
    fn every_name_has_measured_versions_and_every_version_a_name() {
        for named in NAMES {
            assert!(named.versions().next().is_some(), "{}", named.name);
        }
        for measured in MEASURED {
            let is_meant = |named: &ReaderName| named.versions().any(|version| version.version == measured.version);
            assert!(NAMES.iter().any(is_meant), "{} {}", measured.family, measured.version);
        }
        let spark: Vec<&str> = NAMES
            .iter()
            .find(|named| named.name == "spark-4.0")
            .unwrap()
            .versions()
            .map(|measured| measured.version)
            .collect();
        assert_eq!(spark, ["4.0.0", "4.0.5"]);
    }

    #[test]
    fn every_column_type_has_a_row() {
        let decimals = [(1, 0), (9, 2), (10, 2), (18, 4), (19, 0), (38, 38)];
        let decimals = decimals.map(|(precision, scale)| DataType::Decimal { precision, scale });
        for ty in DataType::PLAIN.iter().map(|(_, ty)| *ty).chain(decimals) {
            let is_about = |row: &&Row| matches!(row.subject, MappingPart::Column(is_meant) if is_meant(ty));
            assert!(ROWS.iter().any(|row| is_about(&row)), "{ty}");
        }
    }
}
