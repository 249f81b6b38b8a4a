//! Partition and sort columns.

use std::collections::HashMap;

use super::columns::{self, Columns};
use super::report::{Pointer, Report};
use crate::domain::partition::is_plain_name;
use crate::domain::pipeline::document::{PartitionDocument, PartitionFieldDocument};
use crate::domain::pipeline::types::{DataType, Temporal, TypeClass};
use crate::domain::pipeline::{InferableTexts, PartitionField, Transform};
use crate::domain::problem::ProblemKind::{Duplicate, InvalidValue, TypeMismatch};
use crate::domain::text::quoted;

/// Resolves `partition_by`; fields with a problem are left out.
pub(super) fn resolve(
    documents: &[PartitionDocument],
    columns: &Columns,
    at: &Pointer,
    report: &mut Report,
) -> Vec<PartitionField> {
    let mut fields: Vec<(PartitionField, Pointer)> = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        let at = at.index(index);
        if report.is_replaced(&at) {
            continue;
        }
        let (document, column_at) = match document {
            PartitionDocument::Column(column) => {
                (PartitionFieldDocument { column: column.clone(), ..Default::default() }, at.clone())
            }
            PartitionDocument::Field(field) => (field.clone(), at.key("column")),
        };
        if report.is_replaced(&column_at) {
            continue;
        }
        let Some(column) = columns.find(&document.column, &column_at, report) else { continue };
        let transform = Transform::from(document.transform);
        if report.is_replaced(&at.key("transform")) {
            continue;
        }
        check_type(columns.ty(column), column, transform, columns, &column_at, report);
        if fields.iter().any(|(other, _)| other.column == column && other.transform == transform) {
            let message = format!("the table is already partitioned by {} in this way", quoted(&document.column));
            report.push(Duplicate, &at, message);
            continue;
        }
        let own = columns.name(column).map(|name| name.as_str());
        let (name, name_at) = match (document.name, own) {
            (Some(name), _) => (name, at.key("name")),
            (None, Some(own)) => (default_name(own, transform), at),
            (None, None) => continue,
        };
        let fault = if name.starts_with(['.', '_']) {
            Some("creates folders that readers treat as hidden; set a `name` that starts differently")
        } else if !is_plain_name(&name) {
            Some("has characters that are escaped in paths, which readers show as they are; give another `name`")
        } else {
            None
        };
        if let Some(fault) = fault {
            report.push(InvalidValue, &name_at, format!("{} {fault}", quoted(&name)));
            continue;
        }
        if let Some(name) = columns::name(&name, "partition name", &name_at, report) {
            let inferable_texts = InferableTexts::from(document.inferable_texts);
            fields.push((PartitionField { column, transform, name, inferable_texts }, name_at));
        }
    }
    check_names(&fields, columns, report);
    let fields: Vec<PartitionField> = fields.into_iter().map(|(field, _)| field).collect();
    let taken = |i: usize| fields.iter().any(|f| is_identity_of(f, i));
    if columns.len() > 0 && (0..columns.len()).all(taken) {
        let message = "every column is a partition column; at least one must be stored in the files";
        report.push(InvalidValue, at, message);
    }
    fields
}

fn is_identity_of(field: &PartitionField, column: usize) -> bool {
    field.transform == Transform::Identity && field.column == column
}

fn default_name(column: &str, transform: Transform) -> String {
    let suffix = match transform {
        Transform::Identity => return column.to_owned(),
        Transform::Year => "year",
        Transform::Month => "month",
        Transform::Day => "day",
        Transform::Hour => "hour",
    };
    format!("{column}_{suffix}")
}

fn check_type(
    ty: Option<DataType>,
    column: usize,
    transform: Transform,
    columns: &Columns,
    at: &Pointer,
    report: &mut Report,
) {
    let Some(ty) = ty else { return };
    let class = ty.class();
    let (has_date, has_time) = match class {
        TypeClass::Temporal(Temporal::Date) => (true, false),
        TypeClass::Temporal(Temporal::Time) => (false, true),
        TypeClass::Temporal(Temporal::Timestamp | Temporal::TimestampTz) => (true, true),
        TypeClass::Boolean
        | TypeClass::Integer
        | TypeClass::Float
        | TypeClass::Decimal
        | TypeClass::Text
        | TypeClass::Uuid
        | TypeClass::Json => (false, false),
    };
    let (fits, needs) = match transform {
        Transform::Identity => (class.compares_exactly(), "a type whose values compare exactly"),
        Transform::Year | Transform::Month | Transform::Day => (has_date, "a date, timestamp or timestamptz"),
        Transform::Hour => (has_date && has_time, "a timestamp or timestamptz"),
    };
    if fits {
        return;
    }
    let name = columns.name(column).map_or("", |name| name.as_str());
    let transform = default_name("", transform);
    let transform = if transform.is_empty() { "identity" } else { &transform[1..] };
    let message = format!("partitioning by {transform} requires {needs}, found {} of type {ty}", quoted(name));
    report.push(TypeMismatch, at, message);
}

/// Readers show partition columns beside the stored ones, so all names must differ.
fn check_names(fields: &[(PartitionField, Pointer)], columns: &Columns, report: &mut Report) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, (field, at)) in fields.iter().enumerate() {
        let folded = field.name.folded();
        if let Some(first) = seen.insert(folded.clone(), index) {
            let message = format!("the partition name `{}` is already used by field {first}", field.name);
            report.push(Duplicate, at, message);
            continue;
        }
        let stored = (0..columns.len()).find(|&i| {
            columns.name(i).is_some_and(|name| name.folded() == folded)
                && !fields.iter().any(|(other, _)| is_identity_of(other, i))
        });
        if stored.is_some() {
            let message = format!("the partition name `{}` is also the name of a stored column", field.name);
            report.push(Duplicate, at, message);
        }
    }
}

/// Resolves `sort_by`; columns with a problem are left out.
pub(super) fn resolve_sort(
    names: &[String],
    columns: &Columns,
    partitions: &[PartitionField],
    at: &Pointer,
    report: &mut Report,
) -> Vec<usize> {
    let mut sort = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let at = at.index(index);
        if report.is_replaced(&at) {
            continue;
        }
        let Some(column) = columns.find(name, &at, report) else { continue };
        if sort.contains(&column) {
            report.push(Duplicate, &at, format!("the rows are already sorted by {}", quoted(name)));
        } else if partitions.iter().any(|field| is_identity_of(field, column)) {
            let message =
                format!("{} is the same in all rows of a file, since the table is partitioned by it", quoted(name));
            report.push(InvalidValue, &at, message);
        } else {
            sort.push(column);
        }
    }
    sort
}
