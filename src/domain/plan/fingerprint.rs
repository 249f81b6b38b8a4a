//! When a table must be rebuilt although none of its sources changed.

use crate::domain::digest::sha256_hex;
use crate::domain::pipeline::{Mapping, Transform};

/// Incremented whenever the same rows would give other bytes.
pub const WRITER_FORMAT_VERSION: u32 = 6;

/// Everything except the sources that determines a table's bytes. `versions` contains those of the Parquet writer and,
/// if the mapping uses them, of the SQL engine and of the time-zone data.
pub fn fingerprint(mapping: &Mapping, versions: &str) -> String {
    digest(&[&mapping.canonical, &WRITER_FORMAT_VERSION.to_string(), versions])
}

/// The schema shared by all partitions: the columns' names and types, in any order, and the partitioning. Retained
/// partitions can't be rebuilt, so they are compatible only with an equal layout.
pub fn layout(mapping: &Mapping) -> String {
    let mut columns: Vec<String> = mapping.columns.iter().map(|c| format!("{}\0{}", c.name, c.ty)).collect();
    columns.sort();
    let partitioning = mapping.partition_by.iter().map(|p| {
        let transform = match p.transform {
            Transform::Identity => "identity",
            Transform::Year => "year",
            Transform::Month => "month",
            Transform::Day => "day",
            Transform::Hour => "hour",
        };
        let column = mapping.columns.get(p.column).map_or("", |c| c.name.as_str());
        format!("{column}\0{transform}\0{}", p.name)
    });
    let parts: Vec<String> = columns.into_iter().chain([String::new()]).chain(partitioning).collect();
    digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Length prefixes, so that no two lists give the same bytes.
fn digest(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts {
        text.push_str(&format!("{}:{part}", part.len()));
    }
    sha256_hex(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::{ColumnName, TableName};
    use crate::domain::pipeline::types::DataType;
    use crate::domain::pipeline::*;
    use crate::domain::table_log::cuts::CutTargets;

    fn mapping(table: &str) -> Mapping {
        let column = |name: &str, ty| Column {
            name: ColumnName::parse(name).unwrap(),
            ty,
            source: ColumnSource::Header(vec![name.into()]),
            nullable: true,
            on_error: OnError::Reject,
            formats: vec![],
            number_format: None,
            timezone: None,
        };
        Mapping {
            table: TableName::parse(table).unwrap(),
            files: vec!["*.csv".into()],
            csv: Dialect::default(),
            variants: Variants::default(),
            columns: vec![column("p", DataType::Date), column("v", DataType::String)],
            filter: None,
            checks: vec![],
            extra_columns: ExtraColumns::Ignore,
            missing_columns: MissingColumns::Fail,
            empty_files: EmptyFiles::Load,
            duplicate_columns: DuplicateColumns::Fail,
            rejects: RejectLimits { max_rows: 0, max_ratio: 0.0 },
            partition_by: vec![PartitionField {
                column: 0,
                transform: Transform::Identity,
                name: ColumnName::parse("p").unwrap(),
                inferable_texts: InferableTexts::Reject,
            }],
            sort_by: vec![],
            when_removed: WhenRemoved::RemoveRows,
            keep_history: std::time::Duration::ZERO,
            freshness: None,
            publish: std::collections::BTreeSet::new(),
            parquet: ParquetOptions {
                compression: Compression::None,
                encodings: Encodings::Compatible,
                row_group_rows: 1024,
                file_bytes_max: 1 << 20,
                cuts: CutTargets { file_text_bytes: 1 << 20, tail_text_bytes: 1 << 20 },
            },
            canonical: "{}".into(),
        }
    }

    #[test]
    fn fingerprint_depends_on_mapping_and_versions() {
        let base = mapping("t");
        let mut other = base.clone();
        other.canonical.push(' ');
        assert_eq!(fingerprint(&base, "v1"), fingerprint(&base.clone(), "v1"));
        assert_ne!(fingerprint(&base, "v1"), fingerprint(&base, "v2"));
        assert_ne!(fingerprint(&base, "v1"), fingerprint(&other, "v1"));
    }

    #[test]
    fn layout_depends_only_on_names_types_and_partitioning() {
        let base = mapping("t");
        let mut same = base.clone();
        same.canonical.push(' ');
        same.files = vec!["other/*.csv".into()];
        same.columns.reverse();
        same.partition_by[0].column = same.columns.len() - 1 - same.partition_by[0].column;
        assert_eq!(layout(&base), layout(&same));

        let mut renamed = base.clone();
        renamed.columns[1].name = ColumnName::parse("w").unwrap();
        let mut retyped = base.clone();
        retyped.columns[1].ty = DataType::Int64;
        let mut repartitioned = base.clone();
        repartitioned.partition_by.clear();
        let mut transformed = base.clone();
        transformed.partition_by[0].transform = Transform::Day;
        for other in [renamed, retyped, repartitioned, transformed] {
            assert_ne!(layout(&base), layout(&other));
        }
    }
}
