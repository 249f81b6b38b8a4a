//! Refuses columns that a table format of `publish` doesn't have.

use super::report::{Pointer, Report};
use crate::domain::delta::{NoDeltaType, delta_type};
use crate::domain::pipeline::{Mapping, TableFormat};
use crate::domain::problem::ProblemKind::TypeMismatch;
use crate::domain::text::quoted;

pub(super) fn check(mapping: &Mapping, at: &Pointer, report: &mut Report) {
    if !mapping.publish.contains(&TableFormat::Delta) {
        return;
    }
    let stored = mapping.stored_columns();
    for (index, column) in mapping.columns.iter().enumerate() {
        let Err(NoDeltaType { instead }) = delta_type(column.ty, !stored.contains(&index)) else { continue };
        let (name, ty) = (quoted(column.name.as_str()), column.ty);
        let message = format!(
            "Delta has no type for {name}, which is `{ty}`; declare it `{instead}`, or remove `delta` from `publish`"
        );
        report.push(TypeMismatch, &at.key("columns").index(index).key("type"), message);
    }
}
