//! Reads footers of Parquet files: the service fetches their bytes, a child parses them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::FILE;
use super::fold::{Bounds, ColumnStatistics, Fold, TEXT_CHARS_MAX};
use crate::sql::sandbox::RelationColumn;
use crate::web::access::clipped;

/// The operation's name.
pub const OPERATION: &str = "parquet_footers";
/// Bytes read from a file's end at first: most footers fit.
const TAIL_BYTES: u64 = 32 << 10;
/// Longest footer, in bytes.
const FOOTER_BYTES_MAX: u64 = 16 << 20;

/// Why a footer couldn't be fetched.
#[derive(Debug, PartialEq, Eq)]
pub enum FooterError {
    /// The file changed.
    Changed,
    Malformed(String),
}

/// A request to a child about footers in one file.
#[derive(Debug, Serialize, Deserialize)]
pub struct FootersRequest {
    /// Offset and length of each footer.
    pub footers: Vec<(u64, u64)>,
    /// The columns to summarise, without partitions.
    pub columns: Vec<RelationColumn>,
}

/// A summary of footers.
#[derive(Debug, Serialize, Deserialize)]
pub struct FooterSummary {
    /// Bounds of each column over all footers read.
    pub bounds: Vec<Bounds>,
    pub read: u64,
    /// Indices in [`FootersRequest::footers`], ascending, with the problem.
    pub unreadable: Vec<(usize, String)>,
}

impl FooterSummary {
    /// The summary of no footers.
    pub fn empty(columns: &[RelationColumn]) -> Self {
        let bounds = Fold::of(columns).finish().collect();
        Self { bounds, read: 0, unreadable: Vec::new() }
    }

    /// Whether it is a valid answer to `request`.
    pub fn is_valid_for(&self, request: &FootersRequest) -> bool {
        let ascending = self.unreadable.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let inside = self.unreadable.last().is_none_or(|(at, _)| *at < request.footers.len());
        let short = |value: &Value| match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.chars().nth(TEXT_CHARS_MAX + 1).is_none(),
            Value::Array(_) | Value::Object(_) => false,
        };
        ascending
            && inside
            && self.read.checked_add(self.unreadable.len() as u64) == Some(request.footers.len() as u64)
            && self.bounds.len() == request.columns.len()
            && self.bounds.iter().all(|bounds| short(&bounds.min) && short(&bounds.max))
    }
}

/// Fetches the bytes of a footer from the end of a file of `size` bytes without parsing them. `range` fetches bytes of the
/// file, `None` if it changed.
///
/// # Errors
/// Errors of `range`.
pub fn bytes<E>(
    size: u64,
    range: impl Fn(Range<u64>) -> Result<Option<Vec<u8>>, E>,
) -> Result<Result<Vec<u8>, FooterError>, E> {
    let malformed = |reason: &str| Ok(Err(FooterError::Malformed(reason.to_owned())));
    let start = size.saturating_sub(TAIL_BYTES);
    let Some(mut bytes) = range(start..size)? else { return Ok(Err(FooterError::Changed)) };
    let Some(end) = bytes.last_chunk::<FOOTER_SIZE>() else { return malformed("it is too short") };
    let length = match FooterTail::try_new(end) {
        Ok(tail) if tail.is_encrypted_footer() => return malformed("it is encrypted"),
        Ok(tail) => tail.metadata_length() as u64,
        Err(error) => return malformed(&error.to_string()),
    };
    let needed = length + FOOTER_SIZE as u64;
    if length > FOOTER_BYTES_MAX || needed > size {
        return malformed("its footer length is out of range");
    }
    if needed > bytes.len() as u64 {
        let Some(more) = range(size - needed..start)? else { return Ok(Err(FooterError::Changed)) };
        bytes.splice(0..0, more);
    }
    let from = bytes.len().checked_sub(usize::try_from(needed).unwrap_or(usize::MAX));
    let Some(footer) = from.and_then(|from| bytes.get(from..bytes.len() - FOOTER_SIZE)) else {
        return malformed("it is truncated");
    };
    Ok(Ok(footer.to_vec()))
}

/// Runs in the child: parses the footers in its file.
pub(super) fn read(request: FootersRequest) -> Result<FooterSummary, String> {
    let file = File::open(FILE).map_err(|error| error.to_string())?;
    let columns = request.columns;
    let mut fold = Fold::of(&columns);
    let mut unreadable = Vec::new();
    for (at, (offset, length)) in request.footers.into_iter().enumerate() {
        let mut bytes = vec![0; usize::try_from(length.min(FOOTER_BYTES_MAX)).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())?;
        match Footer::parse(&bytes) {
            Ok(footer) => fold.add(footer.columns(&columns)),
            Err(error) => unreadable.push((at, clipped(&error.to_string()))),
        }
    }
    let read = fold.files();
    Ok(FooterSummary { bounds: fold.finish().collect(), read, unreadable })
}

/// A parsed footer.
struct Footer {
    metadata: ParquetMetaData,
    schema: SchemaRef,
}

impl Footer {
    fn parse(bytes: &[u8]) -> Result<Self, ParquetError> {
        let metadata = ParquetMetaDataReader::decode_metadata(bytes)?;
        let file = metadata.file_metadata();
        let schema = Arc::new(parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?);
        Ok(Self { metadata, schema })
    }

    /// The statistics of each column; `None` for one that the file lacks, or has no statistics for.
    fn columns(&self, columns: &[RelationColumn]) -> Vec<Option<ColumnStatistics>> {
        columns.iter().map(|column| self.column(&column.name).ok()).collect()
    }

    fn column(&self, name: &str) -> Result<ColumnStatistics, ParquetError> {
        let parquet = self.metadata.file_metadata().schema_descr();
        let converter =
            StatisticsConverter::try_new(name, &self.schema, parquet)?.with_missing_null_counts_as_zero(false);
        let groups = self.metadata.row_groups();
        let (mins, maxes) = (converter.row_group_mins(groups)?, converter.row_group_maxes(groups)?);
        let nulls = converter.row_group_null_counts(groups)?;
        // Only present for binary columns; other bounds are exact.
        let exact = |flags: arrow::array::BooleanArray| flags.iter().map(|exact| exact.unwrap_or(true)).collect();
        let min_is_exact = exact(converter.row_group_is_min_value_exact(groups)?);
        let max_is_exact = exact(converter.row_group_is_max_value_exact(groups)?);
        let incomplete = groups.iter().enumerate().any(|(at, group)| {
            let has_bounds = !mins.is_null(at) && !maxes.is_null(at);
            let all_null = !nulls.is_null(at) && i64::try_from(nulls.value(at)) == Ok(group.num_rows());
            !has_bounds && !all_null
        });
        let nulls = (nulls.null_count() == 0).then(|| nulls.values().iter().sum());
        Ok(ColumnStatistics { mins, maxes, min_is_exact, max_is_exact, nulls, incomplete })
    }
}
