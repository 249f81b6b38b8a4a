//! Refuses columns that a table format of `publish` doesn't have.

use super::report::{Pointer, Report};
use crate::domain::delta::delta_type;
use crate::domain::iceberg::iceberg_type;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Mapping, TableFormat};
use crate::domain::problem::ProblemKind::TypeMismatch;
use crate::domain::table_schema::UnsupportedType;
use crate::domain::text::quoted;

pub(super) fn check(mapping: &Mapping, at: &Pointer, report: &mut Report) {
    let stored = mapping.stored_columns();
    for format in &mapping.publish {
        for (index, column) in mapping.columns.iter().enumerate() {
            let Err(UnsupportedType { instead }) = supports(*format, column.ty, !stored.contains(&index)) else {
                continue;
            };
            let (name, ty) = (quoted(column.name.as_str()), column.ty);
            let (title, format) = match format {
                TableFormat::Delta => ("Delta", "delta"),
                TableFormat::Iceberg => ("Iceberg", "iceberg"),
            };
            let message = format!(
                "{title} has no type for {name}, which is `{ty}`; declare it `{instead}`, or remove `{format}` from \
                 `publish`"
            );
            report.push(TypeMismatch, &at.key("columns").index(index).key("type"), message);
        }
    }
}

/// Whether a format has the type of a column.
fn supports(format: TableFormat, ty: DataType, partition: bool) -> Result<(), UnsupportedType> {
    match format {
        TableFormat::Delta => delta_type(ty, partition),
        TableFormat::Iceberg => iceberg_type(ty, partition),
    }
    .map(drop)
}
