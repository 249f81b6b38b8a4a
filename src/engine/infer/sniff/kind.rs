//! The approximate kind of a cell, to distinguish headers from data and delimiters from each other.

use super::super::words::{is_plain_boolean, token};
use crate::domain::pipeline::Dialect;
use crate::engine::cells::{CellProbe, number_shape};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Empty,
    Number,
    /// Dates, times, truth values, UUIDs, JSON.
    Typed,
    Text,
}

pub struct CellKinds {
    styles: [Dialect; 4],
    probes: Vec<CellProbe>,
}

const DATES: [&str; 5] = ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%b-%Y", "%Y/%m/%d"];

impl CellKinds {
    pub fn new() -> Self {
        let style = |decimal, thousands| Dialect { decimal, thousands, ..Dialect::default() };
        let styles = [style(b'.', None), style(b',', Some(b'.')), style(b'.', Some(b',')), style(b',', Some(b' '))];
        let mut probes =
            vec![CellProbe::date(&[]), CellProbe::time(&[]), CellProbe::timestamptz(&[]), CellProbe::uuid()];
        probes.extend(DATES.iter().map(|date| CellProbe::date(&[(*date).to_owned()])));
        Self { styles, probes }
    }

    pub fn of(&mut self, cell: &[u8]) -> CellKind {
        let cell = cell.trim_ascii();
        if cell.is_empty() || token(cell).is_some() {
            return CellKind::Empty;
        }
        if self.styles.iter().any(|style| number_shape(cell, style).is_ok()) {
            return CellKind::Number;
        }
        let nested = matches!(cell, [b'{', .., b'}'] | [b'[', .., b']']);
        // A date followed by a time of day counts by its date.
        let date = cell.iter().position(|b| *b == b' ').map_or(cell, |blank| &cell[..blank]);
        let mut reads = |text: &[u8]| self.probes.iter_mut().any(|probe| probe.check(text).is_ok());
        if is_plain_boolean(cell) || nested || (cell.len() <= 40 && (reads(cell) || reads(date))) {
            CellKind::Typed
        } else {
            CellKind::Text
        }
    }
}
