//! The columns of a table whose config was changed since its files were written.

use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::sql::sandbox::RelationColumn;
use crate::web::tables::catalog::CatalogTable;

/// The columns that a file has, followed by those of its path, `name`. A partition keeps the type that the config gives
/// one of its name; else it is text.
pub(in crate::web) fn with_partitions(
    mut columns: Vec<RelationColumn>,
    name: &str,
    table: &CatalogTable,
) -> Vec<RelationColumn> {
    for segment in name.split('/').filter(|segment| segment.contains('=')) {
        if let Some((name, _)) = parse_segment(segment) {
            let declared = table.columns.iter().find(|column| column.partition && column.name == name);
            let ty = declared.map_or(DataType::String, |column| column.ty);
            columns.push(RelationColumn { name, ty: ty.to_string(), nullable: true, partition: true });
        }
    }
    columns
}
