//! The columns of a table whose config was changed since its files were written.

use std::fs::File;
use std::path::Path;

use arrow::datatypes::{Field, Schema};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::http::ApiError;
use crate::ports::arrow_types::arrow_type;
use crate::sql::sandbox::RelationColumn;
use crate::web::tables::catalog::CatalogTable;

/// The columns that a file has, and those that its path has. A partition keeps the type that the config gives one of
/// its name; else it is text.
///
/// # Errors
/// `internal`, if it is no Parquet file.
pub(super) fn of_file(folder: &Path, name: &str, table: &CatalogTable) -> Result<Vec<RelationColumn>, ApiError> {
    let unreadable = |reason: String| ApiError::internal(format!("`{name}` of table `{}`: {reason}", table.name));
    let file = File::open(folder.join(name)).map_err(|error| unreadable(error.to_string()))?;
    let metadata = ArrowReaderMetadata::load(&file, Default::default()).map_err(|e| unreadable(e.to_string()))?;
    Ok(of_schema(metadata.schema(), name, table))
}

/// [`of_file`] by the schema that the file has. `name`: its path.
pub(in crate::web) fn of_schema(schema: &Schema, name: &str, table: &CatalogTable) -> Vec<RelationColumn> {
    let mut columns: Vec<RelationColumn> = schema.fields().iter().map(|field| stored(field)).collect();
    for segment in name.split('/').filter(|segment| segment.contains('=')) {
        if let Some((name, _)) = parse_segment(segment) {
            let declared = table.columns.iter().find(|column| column.partition && column.name == name);
            let ty = declared.map_or(DataType::String, |column| column.ty);
            columns.push(RelationColumn { name, ty: ty.to_string(), nullable: true, partition: true });
        }
    }
    columns
}

fn stored(field: &Field) -> RelationColumn {
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
