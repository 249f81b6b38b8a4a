//! Footers of Parquet files: the process that serves takes their bytes as they are, a child reads them.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FILE;
use super::columns::stored;
use super::fold::{Bounds, Fold, TEXT_CHARS_MAX};
use crate::domain::limits::COLUMNS_MAX;
use crate::sql::sandbox::RelationColumn;
use crate::web::access::clipped;

/// The operation's name.
pub(in crate::web) const OPERATION: &str = "parquet_footers";
/// Read of a file's end at first, in bytes: most footers fit.
const TAIL_BYTES: u64 = 32 << 10;
/// Longest footer, in bytes.
const FOOTER_BYTES_MAX: u64 = 16 << 20;

/// Why a footer's bytes aren't there.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::web) enum Unread {
    /// The file is no longer what it was.
    Changed,
    Malformed(String),
}

/// What a child is asked of footers, which lie in one file.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::web) struct Request {
    /// Offset and length of each.
    pub(in crate::web) footers: Vec<(u64, u64)>,
    /// Those that are asked for; no partition columns.
    pub(in crate::web) columns: Vec<RelationColumn>,
    /// Take the columns of the first readable file instead.
    pub(in crate::web) columns_of_first: bool,
}

/// What footers say.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::web) struct Told {
    pub(in crate::web) columns: Vec<RelationColumn>,
    /// Of each column, over all footers that were read.
    pub(in crate::web) bounds: Vec<Bounds>,
    pub(in crate::web) read: u64,
    /// Places in [`Request::footers`], ascending, with what is wrong.
    pub(in crate::web) unreadable: Vec<(usize, String)>,
}

impl Told {
    /// What no footer says.
    pub(in crate::web) fn nothing(columns: Vec<RelationColumn>) -> Self {
        let bounds = Fold::of(&columns).finish().collect();
        Self { columns, bounds, read: 0, unreadable: Vec::new() }
    }

    /// Whether it can be an answer to `request`.
    pub(in crate::web) fn answers(&self, request: &Request) -> bool {
        let ascending = self.unreadable.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let inside = self.unreadable.last().is_none_or(|(at, _)| *at < request.footers.len());
        let short = |value: &Value| match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => text.chars().nth(TEXT_CHARS_MAX + 1).is_none(),
            Value::Array(_) | Value::Object(_) => false,
        };
        let columns = match request.columns_of_first {
            true => self.columns.len() <= COLUMNS_MAX,
            false => self.columns == request.columns,
        };
        columns
            && ascending
            && inside
            && self.read.checked_add(self.unreadable.len() as u64) == Some(request.footers.len() as u64)
            && self.bounds.len() == self.columns.len()
            && self.bounds.iter().all(|bounds| short(&bounds.min) && short(&bounds.max))
    }
}

/// The bytes of a footer, taken from the end of a file of `size` bytes and not looked into. `range` gives bytes of the
/// file, `None` if it is no longer there as it was.
///
/// # Errors
/// Those of `range`.
pub(in crate::web) fn bytes<E>(
    size: u64,
    range: impl Fn(Range<u64>) -> Result<Option<Vec<u8>>, E>,
) -> Result<Result<Vec<u8>, Unread>, E> {
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
    Ok(Ok(footer.to_vec()))
}

/// In the child: reads the footers that lie in its file.
pub(super) fn read(request: Request) -> Result<Told, String> {
    let file = File::open(FILE).map_err(|error| error.to_string())?;
    let mut columns = request.columns;
    let mut fold = None;
    let mut unreadable = Vec::new();
    for (at, (offset, length)) in request.footers.into_iter().enumerate() {
        let mut bytes = vec![0; usize::try_from(length.min(FOOTER_BYTES_MAX)).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset).map_err(|error| error.to_string())?;
        match Footer::parse(&bytes) {
            Ok(footer) => {
                if request.columns_of_first && fold.is_none() {
                    columns = stored(&footer.schema);
                }
                fold.get_or_insert_with(|| Fold::of(&columns)).add(footer.columns(&columns));
            }
            Err(error) => unreadable.push((at, clipped(&error.to_string()))),
        }
    }
    let Some(fold) = fold else { return Ok(Told { unreadable, ..Told::nothing(columns) }) };
    let read = fold.files();
    Ok(Told { columns, bounds: fold.finish().collect(), read, unreadable })
}

/// A footer that was read.
struct Footer {
    metadata: ParquetMetaData,
    schema: SchemaRef,
}

/// What row groups say of a column: a value each, null where there is none.
pub(super) struct Found {
    pub(super) mins: ArrayRef,
    pub(super) maxes: ArrayRef,
    /// Whether a bound is a value of the column, and not a cut one.
    pub(super) min_is_exact: Vec<bool>,
    pub(super) max_is_exact: Vec<bool>,
    pub(super) nulls: Option<u64>,
    /// Some row group has values, and tells no bounds.
    pub(super) untold: bool,
}

impl Footer {
    fn parse(bytes: &[u8]) -> Result<Self, ParquetError> {
        let metadata = ParquetMetaDataReader::decode_metadata(bytes)?;
        let file = metadata.file_metadata();
        let schema = Arc::new(parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?);
        Ok(Self { metadata, schema })
    }

    /// What it says of each of these columns; `None` of one that the file doesn't have, or tells nothing of.
    fn columns(&self, columns: &[RelationColumn]) -> Vec<Option<Found>> {
        columns.iter().map(|column| self.column(&column.name).ok()).collect()
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
