//! The variants of a mapping.

use super::columns::{self, Columns};
use super::report::{Pointer, Report};
use super::{canonical, dialect, files};
use crate::domain::pipeline::document::MappingDocument;
use crate::domain::pipeline::{Column, Dialect};
use crate::domain::pipeline::{Variant, Variants};

/// `known`, `of_table` and `csv`: those of the mapping. Variants with problems are dropped.
pub(super) fn resolve(
    document: &MappingDocument,
    csv: &Dialect,
    known: &Columns,
    of_table: &[Column],
    at: &Pointer,
    report: &mut Report,
) -> Variants {
    let has_column_problem = report.has_problem_within(&at.key("columns"));
    let mut variants = Vec::with_capacity(document.variants.len());
    for (index, variant) in document.variants.iter().enumerate() {
        let at = at.key("variants").index(index);
        if report.is_replaced(&at) {
            continue;
        }
        let csv_at = at.key("csv");
        let files = files::resolve(&variant.files, &at.key("files"), report);
        let own = dialect::resolve(&variant.csv, &csv_at, report);
        // Problems of the mapping's columns would be repeated for each variant.
        if has_column_problem || files.is_empty() {
            continue;
        }
        let header = (!report.is_replaced(&csv_at.key("header"))).then_some(own.header);
        let columns_at = at.key("columns");
        let columns = columns::resolve_variant(
            &document.columns,
            of_table,
            variant,
            (&own, header),
            (known, csv),
            &columns_at,
            report,
        );
        let csv = Dialect { width: columns::width(&own, &columns, &csv_at, report), ..own };
        let id = canonical::variant_id(&csv, &columns);
        variants.push(Variant { files, csv, columns, id });
    }
    // Each glob was compiled before.
    Variants::new(variants).unwrap_or_default()
}
