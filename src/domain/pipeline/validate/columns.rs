//! The columns of a mapping: names, types, sources.

use std::collections::{HashMap, HashSet};

use super::report::{Pointer, Report};
use super::{formats, numbers, types};
use crate::domain::limits::{COLUMN_NAME_BYTES_MAX, EXPRESSION_BYTES_MAX};
use crate::domain::name::{ColumnName, NameError};
use crate::domain::pipeline::document::{ColumnDocument, FromDocument, FromPathDocument, VariantDocument};
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Column, ColumnSource, Dialect, NumberFormat, PathPart, PathPattern};
use crate::domain::problem::ProblemKind::{Duplicate, InvalidValue, Limit, TypeMismatch, UnknownColumn};
use crate::domain::text::{did_you_mean, quoted, suggest};
use crate::domain::zones::{self, Zone};

/// The columns of a mapping, as far as they are valid.
pub(super) struct Columns {
    /// `None`: the name has a problem.
    names: Vec<Option<ColumnName>>,
    /// `None`: the type has a problem.
    types: Vec<Option<DataType>>,
    by_folded: HashMap<String, usize>,
    /// All of them, if none has a problem that would change what expressions see.
    pub(super) resolved: Option<Vec<Column>>,
}

impl Columns {
    /// The position of the column that `name` means, compared without regard to case. Reports a name that no column
    /// has, unless a column whose own name has a problem could be the one.
    pub(super) fn find(&self, name: &str, at: &Pointer, report: &mut Report) -> Option<usize> {
        let found = self.by_folded.get(&name.to_lowercase()).copied();
        if found.is_none() && !self.names.is_empty() && self.names.iter().all(Option::is_some) {
            let names = self.names.iter().flatten().map(ColumnName::as_str);
            let hint = did_you_mean(suggest(name, names));
            report.push(UnknownColumn, at, format!("the mapping has no column {}{hint}", quoted(name)));
        }
        found
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, index: usize) -> Option<&ColumnName> {
        self.names[index].as_ref()
    }

    pub(super) fn ty(&self, index: usize) -> Option<DataType> {
        self.types[index]
    }
}

/// `header`: whether the files have one; `None` if that has a problem.
pub(super) fn resolve(
    documents: &[ColumnDocument],
    csv: &Dialect,
    header: Option<bool>,
    at: &Pointer,
    report: &mut Report,
) -> Columns {
    let mut columns =
        Columns { names: Vec::new(), types: Vec::new(), by_folded: HashMap::new(), resolved: Some(Vec::new()) };
    let mut position = 0;
    for (index, document) in documents.iter().enumerate() {
        let at = at.index(index);
        let name = name(&document.name, "column name", &at.key("name"), report);
        if let Some(first) = name.as_ref().and_then(|name| columns.by_folded.get(&name.folded())) {
            let message = format!("the column {} duplicates column {first} (ignoring case)", quoted(&document.name));
            report.push(Duplicate, &at.key("name"), message);
        } else if let Some(name) = &name {
            columns.by_folded.insert(name.folded(), index);
        }
        let ty = match types::parse(&document.ty) {
            _ if report.is_replaced(&at.key("type")) => None,
            Ok(ty) => Some(ty),
            Err(message) => {
                report.push(InvalidValue, &at.key("type"), message);
                None
            }
        };
        let reading = reading(document, csv, header, (ty, position), &at, report);
        position += usize::from(document.is_read());
        let column = name.clone().zip(ty).zip(reading).map(|((name, ty), reading)| Column {
            name,
            ty,
            source: reading.source,
            nullable: document.nullable,
            on_error: document.on_error.into(),
            formats: document.formats.clone(),
            number_format: reading.number_format,
            timezone: reading.timezone,
        });
        columns.resolved = columns.resolved.take().zip(column).map(|(mut all, column)| {
            all.push(column);
            all
        });
        columns.names.push(name);
        columns.types.push(ty);
    }
    if !documents.is_empty() && position == 0 {
        let message = "every column has `expr` or `from_path`; at least one must be read from the files";
        report.push(InvalidValue, at, message);
    }
    columns
}

/// The columns as the files of a variant have them. `columns`: those of the mapping, resolved from `documents`.
pub(super) fn resolve_variant(
    documents: &[ColumnDocument],
    columns: &[Column],
    variant: &VariantDocument,
    format: (&Dialect, Option<bool>),
    of_mapping: (&Columns, &Dialect),
    at: &Pointer,
    report: &mut Report,
) -> Vec<Column> {
    let ((csv, header), (known, mapping_csv)) = (format, of_mapping);
    let mut entries: HashMap<usize, usize> = HashMap::new();
    for (index, entry) in variant.columns.iter().enumerate() {
        let at = at.index(index).key("name");
        if report.is_replaced(&at) {
            continue;
        }
        let Some(column) = known.find(&entry.name, &at, report) else { continue };
        if !documents[column].is_read() {
            let message = format!("the column {} isn't read from the records of the files", quoted(&entry.name));
            report.push(InvalidValue, &at, message);
        } else if let Some(first) = entries.insert(column, index) {
            report.push(Duplicate, &at, format!("the column {} is already in entry {first}", quoted(&entry.name)));
        }
    }
    let mut position = 0;
    let mut resolved = columns.to_vec();
    for (index, (column, document)) in resolved.iter_mut().zip(documents).enumerate() {
        if !document.is_read() {
            continue;
        }
        let entry = entries.get(&index).map(|&entry| (&variant.columns[entry], at.index(entry)));
        // A name is of no use without a header, a position of none with one.
        let from = Some(&document.from).filter(|_| csv.header == mapping_csv.header).cloned().flatten();
        let (document, at) = match entry {
            Some((entry, at)) => (entry.of(document), at),
            None => (ColumnDocument { from, ..document.clone() }, at.clone()),
        };
        if let Some(reading) = reading(&document, csv, header, (Some(column.ty), position), &at, report) {
            column.source = reading.source;
            column.formats = document.formats;
            (column.number_format, column.timezone) = (reading.number_format, reading.timezone);
        }
        position += 1;
    }
    resolved
}

/// How a column's values are read from the files.
struct ColumnReading {
    source: ColumnSource,
    number_format: Option<NumberFormat>,
    timezone: Option<Zone>,
}

/// `of`: the column's type, and its position among those that are read.
fn reading(
    document: &ColumnDocument,
    csv: &Dialect,
    header: Option<bool>,
    of: (Option<DataType>, usize),
    at: &Pointer,
    report: &mut Report,
) -> Option<ColumnReading> {
    let (ty, position) = of;
    check_formats(document, ty, at, report);
    let number_format = numbers::resolve(document, csv, ty, at, report);
    let timezone = timezone(document, ty, at, report);
    let source = source(document, header, position, at, report)?;
    Some(ColumnReading { source, number_format, timezone })
}

/// Cells of a record without a header: as declared, else as many as the columns need.
pub(super) fn width(csv: &Dialect, columns: &[Column], csv_at: &Pointer, report: &mut Report) -> Option<usize> {
    let positions = columns.iter().filter_map(|column| match column.source {
        ColumnSource::Position(position) => Some((position, column)),
        ColumnSource::Header(_) | ColumnSource::Path(_) | ColumnSource::Expr(_) => None,
    });
    let (last, column) = positions.max_by_key(|(position, _)| *position).filter(|_| !csv.header)?;
    if let Some(width) = csv.width.filter(|width| *width <= last) {
        let name = quoted(column.name.as_str());
        let message = format!("{width} cells are too few: the column {name} takes position {last}, counted from 0");
        report.push(InvalidValue, &csv_at.key("width"), message);
    }
    Some(csv.width.unwrap_or(last + 1))
}

/// Reads a name of columns' kind, or reports what is wrong with it.
pub(super) fn name(text: &str, kind: &'static str, at: &Pointer, report: &mut Report) -> Option<ColumnName> {
    if report.is_replaced(at) {
        return None;
    }
    match ColumnName::parse(text) {
        Ok(name) => Some(name),
        Err(error) => {
            let problem = if text.len() > COLUMN_NAME_BYTES_MAX { Limit } else { InvalidValue };
            report.push(problem, at, NameError { kind, ..error }.to_string());
            None
        }
    }
}

/// Whether `sql` can be looked at as an expression; reports it where it can't.
pub(super) fn is_expression(sql: &str, at: &Pointer, report: &mut Report) -> bool {
    if report.is_replaced(at) {
        return false;
    }
    if sql.trim().is_empty() {
        report.push(InvalidValue, at, "expected a SQL expression, found only white space");
        return false;
    }
    if sql.len() > EXPRESSION_BYTES_MAX {
        let message = format!("expected at most {EXPRESSION_BYTES_MAX} bytes of SQL, found {}", sql.len());
        report.push(Limit, at, message);
        return false;
    }
    true
}

fn check_formats(document: &ColumnDocument, ty: Option<DataType>, at: &Pointer, report: &mut Report) {
    let at = at.key("formats");
    if document.formats.is_empty() {
        return;
    }
    if document.expr.is_some() {
        return report.push(InvalidValue, &at, "a column with `expr` is computed, not read: it has no `formats`");
    }
    let Some(ty) = ty else { return };
    if !ty.takes_formats() {
        let message = format!("a column of type {ty} has no `formats`; date, time, timestamp and timestamptz have");
        return report.push(TypeMismatch, &at, message);
    }
    for (index, pattern) in document.formats.iter().enumerate() {
        let at = at.index(index);
        if document.formats[..index].contains(pattern) {
            report.push(Duplicate, &at, format!("{} is listed twice", quoted(pattern)));
        } else if let Err((kind, message)) = formats::check(pattern, ty) {
            report.push(kind, &at, message);
        }
    }
}

fn timezone(document: &ColumnDocument, ty: Option<DataType>, at: &Pointer, report: &mut Report) -> Option<Zone> {
    let text = document.timezone.as_deref()?;
    let at = at.key("timezone");
    if document.expr.is_some() {
        report.push(InvalidValue, &at, "a column with `expr` is computed, not read: it has no `timezone`");
        return None;
    }
    if let Some(ty) = ty.filter(|ty| *ty != DataType::TimestampTz) {
        let message = format!("`timezone` requires type timestamptz, found {ty}");
        report.push(TypeMismatch, &at, message);
        return None;
    }
    match zones::database().zone(text) {
        Some(zone) => Some(zone),
        None => {
            let hint = did_you_mean(suggest(text, zones::database().names()));
            let hint = if hint.is_empty() { ", such as `Europe/Berlin` or `UTC`".into() } else { hint };
            report.push(InvalidValue, &at, format!("{} is not an IANA time zone{hint}", quoted(text)));
            None
        }
    }
}

fn source(
    document: &ColumnDocument,
    header: Option<bool>,
    position: usize,
    at: &Pointer,
    report: &mut Report,
) -> Option<ColumnSource> {
    if report.is_replaced(&at.key("expr")) {
        return None;
    }
    let from = at.key("from");
    if let Some(sql) = &document.expr {
        if document.from.is_some() {
            report.push(InvalidValue, &from, "a column has either `from` or `expr`");
        }
        if document.from_path.is_some() {
            report.push(InvalidValue, &at.key("from_path"), "a column has either `from_path` or `expr`");
        }
        return is_expression(sql, &at.key("expr"), report).then(|| ColumnSource::Expr(sql.clone()));
    }
    if let Some(part) = &document.from_path {
        if document.from.is_some() {
            report.push(InvalidValue, &from, "a column has either `from` or `from_path`");
        }
        return path_part(part, &at.key("from_path"), report).map(ColumnSource::Path);
    }
    let names = match &document.from {
        None if header == Some(false) => return Some(ColumnSource::Position(position)),
        None => return Some(ColumnSource::Header(vec![document.name.clone()])),
        Some(FromDocument::Position(position)) => {
            if header == Some(true) {
                let message = format!("`{position}` is a position, which needs `csv.header` to be false");
                report.push(InvalidValue, &from, message);
            }
            return usize::try_from(*position).ok().map(ColumnSource::Position);
        }
        Some(FromDocument::Name(name)) => vec![name.clone()],
        Some(FromDocument::Names(names)) => names.clone(),
    };
    if header == Some(false) {
        let message = "there is no header to look a name up in, since `csv.header` is false; give a position";
        report.push(InvalidValue, &from, message);
    }
    report_repeated(&names, &from, report);
    Some(ColumnSource::Header(names))
}

fn report_repeated(texts: &[String], at: &Pointer, report: &mut Report) {
    let mut known = HashSet::new();
    for (index, text) in texts.iter().enumerate() {
        if !known.insert(text.to_lowercase()) {
            report.push(Duplicate, &at.index(index), format!("{} is listed twice (ignoring case)", quoted(text)));
        }
    }
}

fn path_part(document: &FromPathDocument, at: &Pointer, report: &mut Report) -> Option<PathPart> {
    if report.is_replaced(at) {
        return None;
    }
    match document {
        FromPathDocument::Pattern(text) => match PathPattern::parse(text) {
            Ok(pattern) => Some(PathPart::Pattern(pattern)),
            Err(message) => {
                report.push(InvalidValue, at, message);
                None
            }
        },
        FromPathDocument::OneOf(texts) => {
            report_repeated(texts, at, report);
            Some(PathPart::OneOf(texts.clone()))
        }
    }
}
