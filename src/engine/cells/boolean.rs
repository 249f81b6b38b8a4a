//! Booleans: exactly one of the declared values.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::fault::FaultKind;
use super::text::Cell;
use super::typed::Parser;
use crate::domain::pipeline::Dialect;

pub(super) struct BooleanParser {
    values: Vec<(Box<[u8]>, bool)>,
}

impl BooleanParser {
    pub fn new(dialect: &Dialect) -> Self {
        let of = |tokens: &[String], value| tokens.iter().map(|t| (t.as_bytes().into(), value)).collect::<Vec<_>>();
        let mut values = of(&dialect.true_values, true);
        values.extend(of(&dialect.false_values, false));
        Self { values }
    }
}

impl Parser for BooleanParser {
    type Value = bool;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<bool, FaultKind> {
        let bytes = cell.bytes();
        self.values.iter().find(|(text, _)| **text == *bytes).map(|(_, value)| *value).ok_or(FaultKind::Syntax)
    }

    fn array(&self, values: Vec<bool>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
    }
}
