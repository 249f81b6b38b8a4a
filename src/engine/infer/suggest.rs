//! Suggests partitioning and sorting.

use serde_json::json;

use super::column_stats::{ColumnSurvey, DISTINCT_MAX};
use super::proposal::{ColumnProposal, Suggestion, SuggestionKind};
use crate::domain::pipeline::document::FromDocument;

/// Smaller files are not worth partitioning.
const ROWS_MIN: u64 = 25_000;
/// Partitions per file, and rows per partition: less than a row group makes files that cost more than they save.
const PARTITIONS_MAX: u64 = 366;
const ROWS_PER_PARTITION_MIN: u64 = 10_000;
/// Number of days from which dates span more than a month.
const DAYS_PER_MONTH: u64 = 31;
/// Distinct values of a text column for partitioning.
const VALUES_MAX: u64 = 20;
const VALUE_BYTES_MAX: usize = 40;

/// Suggestions for `columns`, inferred from `stats`.
pub(super) fn suggest(
    columns: &[ColumnProposal],
    stats: &[ColumnSurvey],
    header: &[String],
    rows: u64,
) -> Vec<Suggestion> {
    let mut made = Vec::new();
    let stats_of = |column: &ColumnProposal| match &column.from {
        FromDocument::Position(at) => stats.get(usize::try_from(*at).ok()?),
        FromDocument::Name(name) => stats.get(header.iter().position(|cell| cell == name)?),
        FromDocument::Names(_) => None,
    };
    let is_time = |column: &&ColumnProposal| matches!(column.ty.as_str(), "date" | "timestamp" | "timestamptz");
    let dated = columns.iter().filter(is_time).find_map(|column| Some((column, stats_of(column)?)));
    if let Some((column, stats)) = dated {
        let days = if column.ty == "date" { &stats.distinct } else { &stats.days };
        let few = days.count() <= PARTITIONS_MAX && !days.more && days.count() > 1;
        let worth = |partitions: u64| rows / partitions.max(1) >= ROWS_PER_PARTITION_MIN;
        let transform = match few && worth(days.count()) {
            true => Some("day"),
            false => worth(days.count().div_ceil(DAYS_PER_MONTH)).then_some("month"),
        };
        if let Some(transform) = transform.filter(|_| rows >= ROWS_MIN) {
            let count = if days.more { format!("more than {DISTINCT_MAX}") } else { days.count().to_string() };
            let why = format!("`{}` has {count} different days in {rows} rows", column.name);
            let value = match (transform, column.ty.as_str()) {
                ("day", "date") => json!(column.name),
                _ => json!({ "column": column.name, "transform": transform }),
            };
            if days.count() > 1 {
                made.push(Suggestion { kind: SuggestionKind::PartitionBy, value, why });
            }
        }
        if rows > 0 && column.ty != "date" {
            let why = format!("queries that filter by `{}` read less of sorted files", column.name);
            made.push(Suggestion { kind: SuggestionKind::SortBy, value: json!(column.name), why });
        }
    }
    let category = columns.iter().find(|column| {
        let values = column.evidence.distinct;
        let short = column.evidence.samples.iter().all(|sample| sample.len() <= VALUE_BYTES_MAX);
        column.ty == "string"
            && column.evidence.distinct_exact
            && (2..=VALUES_MAX).contains(&values)
            && short
            && rows >= ROWS_MIN
            && rows / values >= ROWS_PER_PARTITION_MIN
    });
    if let Some(column) = category {
        let why = format!("`{}` has {} different values in {rows} rows", column.name, column.evidence.distinct);
        made.push(Suggestion { kind: SuggestionKind::PartitionBy, value: json!(column.name), why });
    }
    made
}
