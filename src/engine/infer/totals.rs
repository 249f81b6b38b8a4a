//! Finds lines of totals at the end of a file.
//!
//! Invariant: a line is a total only if it has a total's word in a column that has no such word elsewhere, and an empty
//! cell in a column that has no empty cell elsewhere.

use super::survey::Survey;
use super::words::is_total;
use crate::domain::text::counted;

/// Lines at the end that are not data.
pub(super) struct Footer {
    pub records: u64,
    pub why: String,
}

/// The last records of a file that are totals, and empty records adjacent to them.
pub(super) fn footer(survey: &Survey, room: u64) -> Option<Footer> {
    let last = &survey.last_rows;
    // The examined records must not be the whole file.
    let most = usize::try_from(room).ok()?.min(last.len());
    if survey.rows <= most as u64 {
        return None;
    }
    let is_empty = |row: &[String]| row.iter().all(String::is_empty);
    let total = |row: &[String]| row.iter().position(|cell| is_total(cell)).filter(|at| !is_known(survey, *at));
    let of_footer = |row: &&Vec<String>| is_empty(row) || total(row).is_some();
    let rows: Vec<&Vec<String>> = last.iter().rev().take(most).take_while(of_footer).collect();
    // Empty records belong to a footer only if they are adjacent to totals.
    let said = rows.iter().find_map(|row| Some(&row[total(row)?]))?;
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
    Some(Footer { records, why: format!("at the end, {what}: `{said}`") })
}

/// Whether a total is a common value of a column, such as the name of a firm.
fn is_known(survey: &Survey, at: usize) -> bool {
    let words = survey.last_rows.iter().filter(|row| row.get(at).is_some_and(|cell| is_total(cell))).count() as u64;
    survey.columns.get(at).is_some_and(|column| column.totals > words)
}
