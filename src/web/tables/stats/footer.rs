//! The footer of one Parquet file, read from its end.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};

use crate::sql::sandbox::RelationColumn;

/// Read of a file's end at first, in bytes: most footers fit.
const TAIL_BYTES: u64 = 32 << 10;
/// Longest footer, in bytes.
const FOOTER_BYTES_MAX: u64 = 16 << 20;

/// Why a footer isn't there.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    /// The file is no longer what it was.
    Changed,
    Malformed(String),
}

/// A footer that was read.
pub struct Footer {
    metadata: ParquetMetaData,
    schema: SchemaRef,
}

/// What row groups say of a column: a value each, null where there is none.
pub struct Found {
    pub mins: ArrayRef,
    pub maxes: ArrayRef,
    /// Whether a bound is a value of the column, and not a cut one.
    pub min_is_exact: Vec<bool>,
    pub max_is_exact: Vec<bool>,
    pub nulls: Option<u64>,
    /// Some row group has values, and tells no bounds.
    pub untold: bool,
}

/// Reads the footer of a file of `size` bytes. `range` gives bytes of it, `None` if it is no longer there as it was.
///
/// # Errors
/// Those of `range`.
pub fn read<E>(
    size: u64,
    range: impl Fn(Range<u64>) -> Result<Option<Vec<u8>>, E>,
) -> Result<Result<Footer, Unread>, E> {
    let malformed = |reason: &str| Ok(Err(Unread::Malformed(reason.to_owned())));
    let start = size.saturating_sub(TAIL_BYTES);
    let Some(mut bytes) = range(start..size)? else { return Ok(Err(Unread::Changed)) };
    let Some(end) = bytes.last_chunk::<FOOTER_SIZE>() else { return malformed("it is too short") };
    let length = match FooterTail::try_new(end) {
        Ok(tail) if tail.is_encrypted_footer() => return malformed("it is encrypted"),
        Ok(tail) => tail.metadata_length() as u64,
        Err(error) => return malformed(&error.to_string()),
    };
    let needed = length + FOOTER_SIZE as u64;
    if length > FOOTER_BYTES_MAX || needed > size {
        return malformed("it says that it is longer than any is");
    }
    if needed > bytes.len() as u64 {
        let Some(more) = range(size - needed..start)? else { return Ok(Err(Unread::Changed)) };
        bytes.splice(0..0, more);
    }
    let from = bytes.len().checked_sub(usize::try_from(needed).unwrap_or(usize::MAX));
    let Some(footer) = from.and_then(|from| bytes.get(from..bytes.len() - FOOTER_SIZE)) else {
        return malformed("it is cut");
    };
    Ok(Footer::parse(footer).map_err(|error| Unread::Malformed(error.to_string())))
}

impl Footer {
    fn parse(bytes: &[u8]) -> Result<Self, ParquetError> {
        let metadata = ParquetMetaDataReader::decode_metadata(bytes)?;
        let file = metadata.file_metadata();
        let schema = Arc::new(parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?);
        Ok(Self { metadata, schema })
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What it says of each of these columns; `None` of one that the file doesn't have, or tells nothing of.
    pub fn columns(&self, columns: &[RelationColumn]) -> Vec<Option<Found>> {
        let stored = |column: &RelationColumn| match column.partition {
            true => None,
            false => self.column(&column.name).ok(),
        };
        columns.iter().map(stored).collect()
    }

    fn column(&self, name: &str) -> Result<Found, ParquetError> {
        let parquet = self.metadata.file_metadata().schema_descr();
        let converter =
            StatisticsConverter::try_new(name, &self.schema, parquet)?.with_missing_null_counts_as_zero(false);
        let groups = self.metadata.row_groups();
        let (mins, maxes) = (converter.row_group_mins(groups)?, converter.row_group_maxes(groups)?);
        let nulls = converter.row_group_null_counts(groups)?;
        // Only of bytes is it told; other bounds are values.
        let exact = |told: arrow::array::BooleanArray| told.iter().map(|told| told.unwrap_or(true)).collect();
        let min_is_exact = exact(converter.row_group_is_min_value_exact(groups)?);
        let max_is_exact = exact(converter.row_group_is_max_value_exact(groups)?);
        let untold = groups.iter().enumerate().any(|(at, group)| {
            let told = !mins.is_null(at) && !maxes.is_null(at);
            let all_null = !nulls.is_null(at) && i64::try_from(nulls.value(at)) == Ok(group.num_rows());
            !told && !all_null
        });
        let nulls = (nulls.null_count() == 0).then(|| nulls.values().iter().sum());
        Ok(Found { mins, maxes, min_is_exact, max_is_exact, nulls, untold })
    }
}
