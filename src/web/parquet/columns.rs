//! Reads the columns of a Parquet file.

use std::fs::File;

use arrow::datatypes::{Field, Schema};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use serde::{Deserialize, Serialize};

use crate::domain::limits::COLUMNS_MAX;
use crate::domain::pipeline::types::DataType;
use crate::ports::arrow_types::arrow_type;
use crate::sql::sandbox::{Child, RelationColumn};

use super::call::{CRASHED, ParquetReadError, call};

/// The operation's name.
pub const OPERATION: &str = "parquet_columns";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ColumnsRequest {
    /// Relative to the child's folder.
    file: String,
}

/// Reads the columns of a file in the child's folder, without its partitions.
///
/// # Errors
/// Those of [`call`].
pub fn of_file(child: &mut Child, file: &str) -> Result<Vec<RelationColumn>, ParquetReadError> {
    let columns: Vec<RelationColumn> = call(child, OPERATION, &ColumnsRequest { file: file.to_owned() })?;
    match columns.len() <= COLUMNS_MAX {
        true => Ok(columns),
        false => Err(ParquetReadError::Unreadable(CRASHED.to_owned())),
    }
}

/// Runs in the child.
pub(super) fn read(request: ColumnsRequest) -> Result<Vec<RelationColumn>, String> {
    let file = File::open(&request.file).map_err(|error| error.to_string())?;
    let metadata = ArrowReaderMetadata::load(&file, Default::default()).map_err(|error| error.to_string())?;
    Ok(stored(metadata.schema()))
}

/// The columns of a file's schema.
pub(super) fn stored(schema: &Schema) -> Vec<RelationColumn> {
    schema.fields().iter().map(|field| column(field)).collect()
}

fn column(field: &Field) -> RelationColumn {
    let json = field.extension_type_name() == Some("arrow.json");
    let ty = match field.data_type() {
        arrow::datatypes::DataType::Decimal128(precision, scale) => {
            DataType::Decimal { precision: *precision, scale: scale.unsigned_abs() }
        }
        _ if json => DataType::Json,
        found => {
            let plain = DataType::PLAIN.iter().map(|(_, ty)| *ty);
            plain.into_iter().find(|ty| arrow_type(*ty) == *found).unwrap_or(DataType::String)
        }
    };
    RelationColumn { name: field.name().clone(), ty: ty.to_string(), nullable: field.is_nullable(), partition: false }
}
