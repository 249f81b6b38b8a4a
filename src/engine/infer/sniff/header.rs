//! Decides whether a record is a header.

use super::kind::{CellKind, CellKinds};
use crate::domain::text::counted;

/// The decision and its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderVerdict {
    pub header: bool,
    pub why: String,
    /// The decision is a guess: the file has no evidence either way.
    pub guessed: bool,
}

/// A column is typed if at most one in this many values is text.
const TEXT_ONE_IN: usize = 10;
const NAME_CHARS_MAX: usize = 100;

/// Judges `first` by the records `below` it, all of the same width.
pub fn detect(first: &[Vec<u8>], below: &[Vec<Vec<u8>>], kinds: &mut CellKinds) -> HeaderVerdict {
    let own: Vec<CellKind> = first.iter().map(|cell| kinds.of(cell)).collect();
    let texts = own.iter().filter(|kind| **kind == CellKind::Text).count();
    let verdict = |header, why: String| HeaderVerdict { header, why, guessed: false };
    let unique = is_unique(first);
    if below.is_empty() {
        let header = texts == own.len() && unique;
        let why = if header {
            "the file has one record, and all its cells look like names"
        } else {
            "the file has one record, and its cells look like values"
        };
        return HeaderVerdict { header, why: why.into(), guessed: true };
    }
    let (mut speaks_for, mut against, mut repeats) = (Vec::new(), Vec::new(), 0);
    for (at, kind) in own.iter().enumerate() {
        let cells = || below.iter().filter_map(|record| record.get(at));
        let (mut typed, mut text) = (0, 0);
        for cell in cells() {
            match kinds.of(cell) {
                CellKind::Empty => {}
                CellKind::Number | CellKind::Typed => typed += 1,
                CellKind::Text => text += 1,
            }
        }
        let is_typed = typed > 0 && text * TEXT_ONE_IN <= typed;
        match kind {
            CellKind::Text if is_typed => speaks_for.push(at),
            CellKind::Number | CellKind::Typed if is_typed || text > 0 => against.push(at),
            CellKind::Text => repeats += usize::from(cells().any(|cell| *cell == first[at])),
            CellKind::Number | CellKind::Typed | CellKind::Empty => {}
        }
    }
    let cell = |at: usize| String::from_utf8_lossy(&first[at]).into_owned();
    if !against.is_empty() && years(first, &own) {
        return verdict(true, "it has column names, some of which are years".into());
    }
    if speaks_for.len() > against.len() {
        let why = format!(
            "in {} of {}, the values below are numbers, dates or similar, but the first is not (`{}`)",
            speaks_for.len(),
            counted(own.len() as u64, "column", "columns"),
            cell(speaks_for[0])
        );
        return verdict(true, why);
    }
    if !against.is_empty() {
        let why = format!("the first record has a value (`{}`) like those below", cell(against[0]));
        return verdict(false, why);
    }
    let name_like = |cell: &Vec<u8>| std::str::from_utf8(cell).is_ok_and(|text| text.chars().count() <= NAME_CHARS_MAX);
    let header = unique && repeats == 0 && texts > 0 && first.iter().all(name_like);
    let why = if header {
        "all columns are text, so types don't help; its cells are all different, and none recurs below"
    } else {
        "all columns are text, so types don't help; a cell of the first record recurs"
    };
    HeaderVerdict { header, why: why.into(), guessed: true }
}

fn is_unique(cells: &[Vec<u8>]) -> bool {
    let mut folded: Vec<String> =
        cells.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_lowercase()).collect();
    folded.sort_unstable();
    folded.windows(2).all(|pair| pair[0] != pair[1])
}

/// Names followed by ascending years.
fn years(cells: &[Vec<u8>], kinds: &[CellKind]) -> bool {
    let numbers: Vec<Option<u32>> = cells
        .iter()
        .zip(kinds)
        .filter(|(_, kind)| **kind == CellKind::Number)
        .map(|(cell, _)| std::str::from_utf8(cell).ok().and_then(|text| text.trim().parse().ok()))
        .collect();
    let are_years = numbers.iter().all(|year| year.is_some_and(|year| (1900..=2100).contains(&year)));
    let count_up = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    let named = kinds.contains(&CellKind::Text) && !kinds.contains(&CellKind::Typed);
    numbers.len() >= 2 && are_years && count_up && named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lines: &[&str]) -> bool {
        let cells = |line: &str| line.split(',').map(|c| c.as_bytes().to_vec()).collect::<Vec<_>>();
        let below: Vec<_> = lines[1..].iter().map(|l| cells(l)).collect();
        detect(&cells(lines[0]), &below, &mut CellKinds::new()).header
    }

    #[test]
    fn header_is_detected_above_typed_values_only() {
        for (lines, header) in [
            (&["id,name", "1,a", "2,b"][..], true),
            (&["1,a", "2,b"], false),
            (&["country,2019,2020", "France,1,2"], true),
            (&["1999,2000", "1,2"], false),
            (&["name,city", "Ann,Rome", "Bob,Oslo"], true),
            (&["Ann,Rome", "Bob,Oslo", "Ann,Kyiv"], false),
            (&["a,b"], true),
            (&["a,1"], false),
            (&["when,x", "2024-01-01,y"], true),
            (&["2024-01-01,x", "2024-01-02,y"], false),
        ] {
            assert_eq!(verdict(lines), header, "{lines:?}");
        }
    }
}
