//! Finds footers at the end of a file, lines of totals and of notes, and the values that mark them.
//!
//! Invariants:
//! - a line is a total only if its first value is a total's word in a column that has no such word elsewhere, and it has
//!   an empty cell in a column that has no empty cell elsewhere;
//! - a footer is proposed with the values that mark it, so that a run takes no row of another file for one.

use super::survey::Survey;
use super::words::is_total;
use crate::domain::text::counted;

/// Lines at the end that are not data.
pub(super) struct Footer {
    pub records: u64,
    /// In the form of `footer_values`.
    pub values: Vec<String>,
    pub why: String,
}

/// The last records of a file that are totals, and empty records adjacent to them.
pub(super) fn footer(survey: &Survey, room: u64) -> Option<Footer> {
    let last = &survey.last_rows;
    let most = usize::try_from(room).ok()?.min(last.len());
    let is_empty = |row: &[String]| row.iter().all(String::is_empty);
    let total = |row: &[String]| {
        let first = row.iter().position(|cell| !cell.is_empty())?;
        (is_total(&row[first]) && !is_known(survey, first)).then_some(first)
    };
    let of_footer = |row: &&Vec<String>| is_empty(row) || total(row).is_some();
    let rows: Vec<&Vec<String>> = last.iter().rev().take(most).take_while(of_footer).collect();
    // A footer is not the whole file.
    if survey.rows <= rows.len() as u64 {
        return None;
    }
    // Empty records belong to a footer only if they are adjacent to totals.
    let mut values: Vec<String> = Vec::new();
    for row in rows.iter().rev() {
        if let Some(at) = total(row).filter(|at| !values.contains(&row[*at])) {
            values.push(row[at].clone());
        }
    }
    let shown = values.first()?;
    let columns = 0..survey.columns.len();
    let lacking = |at: &usize| {
        let empty = rows.iter().filter(|row| row.get(*at).is_some_and(String::is_empty)).count() as u64;
        empty > 0 && survey.columns[*at].tokens[0].all() == empty
    };
    if !columns.into_iter().any(|at| lacking(&at)) {
        return None;
    }
    let records = rows.len() as u64;
    let what = counted(records, "record is a total or empty", "records are totals or empty");
    let why = format!("at the end, {what}: `{shown}`");
    Some(Footer { records, values, why })
}

/// The ragged records as a footer of at most `room` records, if all of them are at the end and are marked as notes.
pub(super) fn notes(survey: &Survey, room: u64) -> Option<Footer> {
    let (records, marks) = survey.ragged_at_end()?;
    if records > room || survey.rows == 0 {
        return None;
    }
    let mut values = Vec::new();
    for value in marks {
        let value = value.clone()?;
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    let why = match records {
        1 => format!("the last record has a different number of cells than the {} before it", survey.rows),
        records => {
            format!("the last {records} records have a different number of cells than the {} before them", survey.rows)
        }
    };
    Some(Footer { records, values, why })
}

/// Whether a total is a common value of a column, such as the name of a firm.
fn is_known(survey: &Survey, at: usize) -> bool {
    let words = survey.last_rows.iter().filter(|row| row.get(at).is_some_and(|cell| is_total(cell))).count() as u64;
    survey.columns.get(at).is_some_and(|column| column.totals > words)
}
