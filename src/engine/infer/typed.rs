//! The inferred type of a column.

use super::proposal::{Alternative, ColumnRole};
use super::times::TimeReading;
use crate::domain::pipeline::document::NumberFormatDocument;

/// A column's type before the dialect is settled.
pub(super) struct Typed {
    pub ty: String,
    pub why: String,
    pub formats: Vec<String>,
    pub number_format: Option<NumberFormatDocument>,
    pub role: Option<ColumnRole>,
    pub range: Option<String>,
    pub alternatives: Vec<Alternative>,
    pub warnings: Vec<String>,
    /// Dates whose order of day and month is undecided.
    pub open: Option<Vec<TimeReading>>,
}

impl Typed {
    pub fn new(ty: &str, why: impl Into<String>) -> Self {
        Self {
            ty: ty.to_owned(),
            why: why.into(),
            formats: Vec::new(),
            number_format: None,
            role: None,
            range: None,
            alternatives: Vec::new(),
            warnings: Vec::new(),
            open: None,
        }
    }

    pub fn is_text(&self) -> bool {
        self.ty == "string"
    }
}
