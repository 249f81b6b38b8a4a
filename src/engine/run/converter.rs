//! What a run asks of a conversion.

use std::collections::BTreeSet;
use std::path::Path;

use super::rejects::concatenate;
use crate::domain::job::RunError;
use crate::engine::convert::{Conversion, ConvertError, Converted, Held, SourceOutcome, SourceRef, SpooledFile};

/// Turns the sources of a table into spooled files.
pub trait Converter {
    /// Rows that were read to learn their partitions.
    type Held;

    /// See [`Conversion::hold`].
    ///
    /// # Errors
    /// See [`ConvertError`].
    fn hold(&self, table: &Conversion<'_>, sources: &[SourceRef]) -> Result<Self::Held, ConvertError>;

    /// What each held source gave, in key order.
    fn outcomes<'h>(&self, held: &'h Self::Held) -> &'h [SourceOutcome];

    /// See [`Conversion::build`].
    ///
    /// # Errors
    /// See [`ConvertError`].
    fn build(
        &self,
        table: &Conversion<'_>,
        sources: &[SourceRef],
        held: Option<Self::Held>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Converted, ConvertError>;

    /// Writes the rejects of several tables, in order, into one file, with the table's name as first column.
    ///
    /// # Errors
    /// If scratch fails.
    fn join_rejects(&self, parts: &[(&str, &SpooledFile)], to: &Path) -> Result<(), RunError> {
        concatenate(parts, to)
    }
}

/// The conversion of CSV to Parquet.
#[derive(Debug, Clone, Copy, Default)]
pub struct CsvConverter;

impl Converter for CsvConverter {
    type Held = Held;

    fn hold(&self, table: &Conversion<'_>, sources: &[SourceRef]) -> Result<Held, ConvertError> {
        table.hold(sources)
    }

    fn outcomes<'h>(&self, held: &'h Held) -> &'h [SourceOutcome] {
        &held.sources
    }

    fn build(
        &self,
        table: &Conversion<'_>,
        sources: &[SourceRef],
        held: Option<Held>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Converted, ConvertError> {
        table.build(sources, held, only)
    }
}
