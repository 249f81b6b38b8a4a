//! The columns of a table as its files have them: for files that no manifest describes.

use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::sql::sandbox::RelationColumn;

/// The columns of a file, followed by those of its path, `name`. A partition has the type of the one in `known` with its
/// name, else it is text.
pub(in crate::web) fn with_partitions(
    mut columns: Vec<RelationColumn>,
    name: &str,
    known: &[RelationColumn],
) -> Vec<RelationColumn> {
    for segment in name.split('/').filter(|segment| segment.contains('=')) {
        if let Some((name, _)) = parse_segment(segment) {
            let same = known.iter().find(|column| column.partition && column.name == name);
            let ty = same.map_or_else(|| DataType::String.to_string(), |column| column.ty.clone());
            columns.push(RelationColumn { name, ty, nullable: true, partition: true });
        }
    }
    columns
}

/// The columns of a file of a table that is being published, so that the file may be of the schema before or after:
/// `known` if they fit the file, else [`with_partitions`].
pub(in crate::web) fn of_published(
    stored: Vec<RelationColumn>,
    name: &str,
    known: &[RelationColumn],
) -> Vec<RelationColumn> {
    let found = with_partitions(stored, name, known);
    let fits = |column: &RelationColumn| {
        let same = |other: &RelationColumn| {
            (&other.name, &other.ty, other.partition) == (&column.name, &column.ty, column.partition)
        };
        known.iter().any(same)
    };
    if found.len() == known.len() && found.iter().all(fits) { known.to_vec() } else { found }
}
