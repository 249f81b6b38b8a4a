//! Makes small mappings, manifests and listings for the tests of the rules.

use std::collections::{BTreeMap, BTreeSet};

use super::{ListedObject, Listing, PlanInput};
use crate::domain::manifest::{FileEntry, Manifest, PartitionEntry, SourceEntry};
use crate::domain::name::{ColumnName, TableName};
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::*;
use crate::domain::table_log::cuts::CutTargets;

pub(super) fn mapping(table: &str) -> Mapping {
    let column = |name: &str, ty| Column {
        name: ColumnName::parse(name).unwrap(),
        ty,
        source: ColumnSource::Header(vec![name.into()]),
        nullable: true,
        on_error: OnError::Reject,
        formats: vec![],
        timezone: None,
    };
    Mapping {
        table: TableName::parse(table).unwrap(),
        files: vec!["*.csv".into()],
        csv: Dialect::default(),
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

/// A table of which everything is owned, so that a test can bend it.
pub(super) struct World {
    pub manifest: Option<Manifest>,
    pub sources: Listing,
    pub lake: BTreeSet<String>,
    pub output: Listing,
    pub prefix: String,
    pub clean: bool,
    pub fingerprint: String,
    pub layout: String,
}

impl World {
    /// Published and undisturbed: each source with the partitions it feeds.
    pub fn published(sources: &[(&str, &[&str])]) -> Self {
        let mut manifest = Manifest::new("t", "f", "l");
        let mut world = Self {
            manifest: None,
            sources: Listing::new(),
            lake: BTreeSet::new(),
            output: Listing::new(),
            prefix: String::new(),
            clean: false,
            fingerprint: "f".into(),
            layout: "l".into(),
        };
        for (source, partitions) in sources {
            world.put(source, "1");
            manifest.sources.insert((*source).into(), source_entry("1", partitions));
            for partition in *partitions {
                let entry = manifest.partitions.entry((*partition).into()).or_insert_with(|| PartitionEntry {
                    files: vec![file_entry(&format!("t/{partition}/part-00000.parquet"), &[])],
                    retained: false,
                    job_id: "j0".into(),
                    fence: 1,
                });
                entry.files[0].sources.push((*source).into());
            }
        }
        for file in manifest.files() {
            world.output.insert(file.key.clone(), ListedObject { size: file.size, etag: file.etag.clone() });
        }
        world.manifest = Some(manifest);
        world
    }

    /// A source appears or changes.
    pub fn put(&mut self, source: &str, etag: &str) {
        self.sources.insert(source.into(), ListedObject { size: 10, etag: Some(etag.into()) });
        self.lake.insert(source.into());
    }

    pub fn remove(&mut self, source: &str) {
        self.sources.remove(source);
        self.lake.remove(source);
    }

    pub fn manifest_mut(&mut self) -> &mut Manifest {
        self.manifest.as_mut().unwrap()
    }

    pub fn situation(&self) -> PlanInput<'_> {
        PlanInput {
            table: "t",
            manifest: self.manifest.as_ref(),
            fingerprint: &self.fingerprint,
            layout: &self.layout,
            sources: &self.sources,
            lake: &self.lake,
            output: &self.output,
            prefix: &self.prefix,
            clean: self.clean,
        }
    }
}

pub(super) fn source_entry(etag: &str, partitions: &[&str]) -> SourceEntry {
    SourceEntry {
        etag: Some(etag.into()),
        size: 10,
        sha256: "s".into(),
        read_at: "2024-01-01T00:00:10.000Z".into(),
        rows_read: partitions.len() as u64,
        rows_written: partitions.len() as u64,
        rows_rejected: 0,
        rows_filtered: 0,
        partitions: partitions.iter().map(|p| ((*p).to_owned(), 1)).collect(),
    }
}

pub(super) fn file_entry(key: &str, sources: &[&str]) -> FileEntry {
    FileEntry {
        key: key.into(),
        rows: 1,
        size: 100,
        etag: Some(format!("e:{key}")),
        sha256: format!("s:{key}"),
        sources: set(sources).into_iter().collect(),
    }
}

pub(super) fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|k| (*k).to_owned()).collect()
}

pub(super) fn has(pairs: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    pairs.iter().map(|(source, partitions)| ((*source).to_owned(), set(partitions))).collect()
}
