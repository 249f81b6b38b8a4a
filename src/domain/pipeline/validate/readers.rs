//! Warns of columns and options that one of `parquet.readers` refuses or reads differently.

use super::report::{Pointer, Report};
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::readers::{MappingNode, MeasuredVersion, NAMES, ROWS, ReaderSupport};
use crate::domain::problem::ProblemKind::Reader;
use crate::domain::text::quoted;

/// `names`: those in the document; ones that the schema refused are skipped.
pub(super) fn check(mapping: &Mapping, names: &[String], at: &Pointer, report: &mut Report) {
    let readers = || NAMES.iter().filter(|named| names.iter().any(|name| name == named.name));
    for row in ROWS.iter().filter(|_| !names.is_empty()) {
        let label = row.label.replace('`', "");
        for node in row.nodes(mapping) {
            for reader in readers() {
                for (reading, versions) in readings(row.label, reader.versions()) {
                    let Some(consequence) = reading.consequence() else { continue };
                    let about = about(mapping, node, &label);
                    let message = format!("{about}: {} {} {consequence}", reader.family, versions.join(", "));
                    report.warn(Reader, &pointer(at, node), message);
                }
            }
        }
    }
}

/// How versions handle a row: each kind of support once, with its versions.
fn readings<'a>(
    label: &str,
    versions: impl Iterator<Item = &'a MeasuredVersion>,
) -> Vec<(ReaderSupport, Vec<&'a str>)> {
    let mut found: Vec<(ReaderSupport, Vec<&str>)> = Vec::new();
    for measured in versions {
        let Some(reading) = measured.reading(label) else { continue };
        match found.iter_mut().find(|(own, _)| *own == reading) {
            Some((_, versions)) => versions.push(measured.version),
            None => found.push((reading, vec![measured.version])),
        }
    }
    found
}

fn about(mapping: &Mapping, node: MappingNode, label: &str) -> String {
    match node {
        MappingNode::Column(column) => format!("{} ({label})", quoted(mapping.columns[column].name.as_str())),
        MappingNode::Partition(field) => format!("{} ({label})", quoted(mapping.partition_by[field].name.as_str())),
        MappingNode::Encodings | MappingNode::Compression => label.to_owned(),
    }
}

fn pointer(at: &Pointer, node: MappingNode) -> Pointer {
    match node {
        MappingNode::Column(column) => at.key("columns").index(column).key("type"),
        MappingNode::Partition(field) => at.key("partition_by").index(field),
        MappingNode::Encodings => at.key("parquet").key("encodings"),
        MappingNode::Compression => at.key("parquet").key("compression"),
    }
}
