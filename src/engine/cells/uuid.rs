//! UUIDs: 32 hex digits of any case, either all together or hyphenated 8-4-4-4-12; no braces, no `urn:`.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray};
use arrow::buffer::{Buffer, NullBuffer};

use super::fault::FaultKind;
use super::text::Cell;
use super::typed::Parser;

pub(super) struct UuidParser;

impl Parser for UuidParser {
    type Value = [u8; 16];

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<[u8; 16], FaultKind> {
        match cell.len() {
            32 | 36 => ::uuid::Uuid::try_parse_ascii(cell.bytes()).map(::uuid::Uuid::into_bytes).ok(),
            _ => None,
        }
        .ok_or(FaultKind::Syntax)
    }

    fn array(&self, values: Vec<[u8; 16]>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::new(16, Buffer::from_vec(values.into_flattened()), nulls))
    }
}
