//! Maps a table's columns to positions in a source's records.

use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::limits::{COLUMN_NAME_BYTES_MAX, EXTRA_COLUMNS_MAX};
use crate::domain::pipeline::{
    Column, ColumnSource, DuplicateColumns, EmptyFiles, ExtraColumns, Mapping, MissingColumns, SourceFormat,
};

/// Bytes of a header shown in an error.
const HEADER_BYTES_SHOWN_MAX: usize = 1_000;

/// How the records of a source map to the columns of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceLayout {
    /// The variant that the source belongs to.
    pub variant: Option<usize>,
    /// The position in the record of each column of the mapping; `None` for computed and missing columns.
    pub positions: Vec<Option<usize>>,
    /// Cells per record.
    pub width: usize,
    /// The first columns of the header that could be added to the mapping.
    pub extra: Vec<String>,
    /// The columns that take their value from the source's path, and the value.
    pub path_values: Vec<(usize, Option<String>)>,
}

/// Matches the header of `source`, or the positions without one, against the mapping. `is_empty`: the source has no
/// text.
///
/// # Errors
/// `header_mismatch` with the source, its missing, duplicate or extra columns, and the header found.
pub(super) fn resolve(
    mapping: &Mapping,
    format: SourceFormat<'_>,
    source: &str,
    header: Option<&[String]>,
    width: usize,
    is_empty: bool,
) -> Result<SourceLayout, RunError> {
    let path_values = path_values(mapping, format, source)?;
    let layout = match header {
        Some(_) if is_empty => match mapping.empty_files {
            EmptyFiles::Load => SourceLayout {
                variant: format.variant,
                positions: vec![None; mapping.columns.len()],
                width: 0,
                extra: Vec::new(),
                path_values: Vec::new(),
            },
            EmptyFiles::Fail => return Err(empty(mapping, source)),
        },
        Some(cells) => by_name(mapping, format, source, cells)?,
        None => by_position(mapping, format, source, width)?,
    };
    Ok(SourceLayout { path_values, ..layout })
}

/// The values that columns take from the path of `source`.
fn path_values(
    mapping: &Mapping,
    format: SourceFormat<'_>,
    source: &str,
) -> Result<Vec<(usize, Option<String>)>, RunError> {
    let mut values = Vec::new();
    for (at, column) in format.columns.iter().enumerate() {
        let ColumnSource::Path(part) = &column.source else { continue };
        let value = part.value(source);
        if value.is_none() && !column.nullable {
            let fault = format!("its path has no value of the column `{}`: {}", column.name, part.lacks());
            return Err(RunError::new(
                RunErrorCode::HeaderMismatch,
                format!("`{source}` does not fit table `{}`: {fault}", mapping.table),
            )
            .detail("rename the file, change the column's `from_path`, or set `nullable`")
            .path(source));
        }
        values.push((at, value));
    }
    Ok(values)
}

fn by_name(
    mapping: &Mapping,
    format: SourceFormat<'_>,
    source: &str,
    cells: &[String],
) -> Result<SourceLayout, RunError> {
    let folded: Vec<String> = cells.iter().map(|c| c.to_lowercase()).collect();
    let (mut missing, mut duplicate) = (Vec::new(), Vec::new());
    let mut used = vec![false; cells.len()];
    let mut positions = Vec::with_capacity(format.columns.len());
    for column in format.columns {
        let ColumnSource::Header(names) = &column.source else {
            positions.push(None);
            continue;
        };
        let found = names.iter().find_map(|name| {
            let name = name.to_lowercase();
            let places: Vec<usize> = (0..folded.len()).filter(|&i| folded[i] == name).collect();
            (!places.is_empty()).then_some(places)
        });
        match found {
            None => {
                missing.push(format!("`{}`", names.join("` or `")));
                positions.push(None);
            }
            Some(places) => {
                if places.len() > 1 {
                    duplicate.push(format!("`{}`", cells[places[0]]));
                }
                places.iter().for_each(|&p| used[p] = true);
                positions.push(Some(places[0]));
            }
        }
    }
    let mut faults = Vec::new();
    let declared = format.columns.iter().filter(|c| matches!(c.source, ColumnSource::Header(_))).count();
    let has_none = missing.len() == declared;
    if has_none && mapping.missing_columns == MissingColumns::Null {
        // Its rows would be nothing but nulls.
        faults.push(format!("it has none of the columns {}", missing.join(", ")));
    } else if mapping.missing_columns == MissingColumns::Fail && !missing.is_empty() {
        faults.push(format!("it has no column {}", missing.join(", ")));
    }
    if mapping.duplicate_columns == DuplicateColumns::Fail && !duplicate.is_empty() {
        faults.push(format!("it has column {} more than once", duplicate.join(", ")));
    }
    if mapping.extra_columns == ExtraColumns::Fail {
        let extra: Vec<String> =
            cells.iter().zip(&used).filter(|(_, used)| !**used).map(|(c, _)| format!("`{c}`")).collect();
        if !extra.is_empty() {
            faults.push(format!("it has columns that the table doesn't declare: {}", extra.join(", ")));
        }
    }
    if faults.is_empty() {
        return Ok(SourceLayout {
            variant: format.variant,
            positions,
            width: cells.len(),
            extra: extra(cells, &used, format.columns),
            path_values: Vec::new(),
        });
    }
    let found = if cells.is_empty() {
        "the source has no header line".to_owned()
    } else {
        format!("the header found is: {}", shown(cells))
    };
    let error = mismatch(mapping, source, &faults, &found);
    match suspicion(cells, has_none) {
        Some(suspicion) => {
            let detail = error.detail.clone().unwrap_or_default();
            Err(error.detail(format!("{detail}. {suspicion}")))
        }
        None => Err(error),
    }
}

/// Columns that the mapping doesn't read, except names that are too long for a column and duplicates of declared
/// columns.
fn extra(cells: &[String], used: &[bool], columns: &[Column]) -> Vec<String> {
    let is_declared = |cell: &str| {
        let folded = cell.to_lowercase();
        columns.iter().any(|column| match &column.source {
            ColumnSource::Header(names) => names.iter().any(|name| name.to_lowercase() == folded),
            ColumnSource::Position(_) | ColumnSource::Path(_) | ColumnSource::Expr(_) => false,
        })
    };
    let mut names: Vec<String> = Vec::new();
    for (cell, _) in cells.iter().zip(used).filter(|(_, used)| !**used) {
        if names.len() == EXTRA_COLUMNS_MAX {
            break;
        }
        let is_name = !cell.is_empty() && cell.len() <= COLUMN_NAME_BYTES_MAX;
        if is_name && !names.contains(cell) && !is_declared(cell) {
            names.push(cell.clone());
        }
    }
    names
}

/// A header's cells, truncated.
fn shown(cells: &[String]) -> String {
    let mut text = cells.join(" | ");
    if text.len() > HEADER_BYTES_SHOWN_MAX {
        text.truncate(text.floor_char_boundary(HEADER_BYTES_SHOWN_MAX));
        text.push('…');
    }
    text
}

/// A hint about the dialect that a mismatch suggests. `none`: the header has none of the columns.
fn suspicion(cells: &[String], none: bool) -> Option<&'static str> {
    let holds = |c: char| cells.iter().any(|cell| cell.contains(c));
    if holds('\0') {
        Some(
            "It contains NULs: if it is UTF-16 without a byte order mark, set `csv.encoding` to `utf-16le` or `utf-16be`",
        )
    } else if holds('\r') {
        Some("It contains carriage returns: if these end the lines, set `csv.record_terminator` to `cr`")
    } else if !none || cells.is_empty() {
        None
    } else if let [cell] = cells
        && cell.contains([',', ';', '\t', '|'])
    {
        Some(
            "It is a single cell: if the delimiter is another byte, set `csv.delimiter`, or in an entry of `variants` if other files keep theirs",
        )
    } else {
        Some(
            "If there are lines before the header, set `csv.skip_rows`; if there is no header, set `csv.header` to false",
        )
    }
}

/// `first`: cells of the first record, 0 if there is none. They count only if columns may be missing; then a file has
/// the columns of its first record.
fn by_position(
    mapping: &Mapping,
    format: SourceFormat<'_>,
    source: &str,
    first: usize,
) -> Result<SourceLayout, RunError> {
    let declared = format.csv.width.unwrap_or(first);
    let width = match mapping.missing_columns {
        MissingColumns::Null if first > 0 => first.min(declared),
        MissingColumns::Null | MissingColumns::Fail => declared,
    };
    let mut used = vec![false; width];
    let mut positions = Vec::with_capacity(format.columns.len());
    for column in format.columns {
        let position = match &column.source {
            ColumnSource::Position(at) if *at < width => Some(*at),
            ColumnSource::Position(_) | ColumnSource::Header(_) | ColumnSource::Path(_) | ColumnSource::Expr(_) => None,
        };
        if let Some(at) = position {
            used[at] = true;
        }
        positions.push(position);
    }
    let extra = used.iter().filter(|used| !**used).count();
    if mapping.extra_columns == ExtraColumns::Fail && extra > 0 && first > 0 {
        let fault = format!("it has {extra} columns that the table doesn't declare");
        let found = format!("a record has {width} cell{}", if width == 1 { "" } else { "s" });
        return Err(mismatch(mapping, source, &[fault], &found));
    }
    Ok(SourceLayout { variant: format.variant, positions, width, extra: Vec::new(), path_values: Vec::new() })
}

fn empty(mapping: &Mapping, source: &str) -> RunError {
    RunError::new(
        RunErrorCode::HeaderMismatch,
        format!("`{source}` does not fit table `{}`: the file is empty and has no header", mapping.table),
    )
    .detail("replace it with a file that has a header, delete it, or set `empty_files` to `load` to treat it as a file without rows")
    .path(source)
}

fn mismatch(mapping: &Mapping, source: &str, faults: &[String], found: &str) -> RunError {
    RunError::new(
        RunErrorCode::HeaderMismatch,
        format!("`{source}` does not fit table `{}`: {}", mapping.table, faults.join("; ")),
    )
    .detail(format!(
        "{found}; correct the source, add the name to the column's `from`, or set `missing_columns`, \
         `duplicate_columns` or `extra_columns`"
    ))
    .path(source)
}
