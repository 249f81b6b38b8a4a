//! Builds the next manifest of a table from a run's sources and files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::accounting::{self, PartitionAccounting};
use super::output;
use super::published_files::PublishedFile;
use super::result::{TableReport, TableReportEnd};
use super::update::{UpdatedGroup, UpdatedPartition};
use crate::domain::job::{RunError, TableResult};
use crate::domain::layout::{relative_data_key, relative_rejects_key};
use crate::domain::table_log::entries::{SourceEntry, StoredFile};
use crate::engine::convert::{ConvertError, SourceList, SourceOutcome, SpooledFile};
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{Edit, Edited, FoundRoot, RootHead, TableStore, WrittenGroup};

/// Describes a data file for other engines.
pub(super) type Describe<'a> = dyn Fn(&SpooledFile) -> Result<PublishedFile, RunError> + Send + 'a;

/// The files that a conversion made, by their keys.
struct ConvertedFiles<'a> {
    files: BTreeMap<String, SpooledFile>,
    /// Describes them for other engines.
    describe: Box<Describe<'a>>,
}

/// Edits of a manifest.
pub(super) struct Edits<'a> {
    table: TableStore<'a>,
    edit: Edit<'a>,
    /// All sources that the run reads.
    sources: Arc<SourceList>,
    /// When they were read, RFC 3339.
    read_at: String,
    made: ConvertedFiles<'a>,
    rejects: Vec<SpooledFile>,
    report: TableReport,
    placed: PartitionAccounting,
}

/// The end of an edit.
pub(super) struct Finished {
    pub edited: Edited,
    /// The spooled file of every new key.
    pub made: BTreeMap<String, SpooledFile>,
    /// The spooled rejects of the sources read, in key order.
    pub rejects: Vec<SpooledFile>,
    pub result: TableResult,
}

impl<'a> Edits<'a> {
    /// `rebuild`: nothing of the current manifest is kept.
    pub fn new(
        table: TableStore<'a>,
        found: &FoundRoot,
        rebuild: bool,
        job_id: &str,
        sources: &Arc<SourceList>,
        read_at: String,
        describe: Box<Describe<'a>>,
    ) -> Result<Self, RunError> {
        let edit = Edit::new(table, found, rebuild, job_id).map_err(table_error)?;
        let (sources, rejects) = (Arc::clone(sources), Vec::new());
        let made = ConvertedFiles { files: BTreeMap::new(), describe };
        let (report, placed) = (TableReport::default(), PartitionAccounting::default());
        Ok(Self { table, edit, sources, read_at, made, rejects, report, placed })
    }

    /// Adds a source that was read.
    ///
    /// # Errors
    /// If it isn't the one that was listed, or one of its bytes or rows is unaccounted for.
    pub fn read(&mut self, outcome: SourceOutcome) -> Result<(), ConvertError> {
        let key = outcome.rows.source.clone();
        let planned = self.sources.find(&key);
        let tag = planned.as_ref().and_then(|planned| planned.etag.as_ref()).map(|etag| etag.0.clone());
        let is_same_tag = tag.as_ref().zip(outcome.etag.as_ref()).is_none_or(|(planned, found)| planned == found);
        if planned.is_none_or(|planned| planned.size != outcome.size) || !is_same_tag {
            return Err(ConvertError::SourceChanged { key });
        }
        accounting::check(self.table.table, &outcome)?;
        self.report.read(&outcome);
        self.placed.expect(&outcome);
        let rejects = outcome.rejects.as_ref().map(|file| self.made.rejects(self.table.table, &key, file));
        self.edit.set_rejects(&key, rejects).map_err(table_error)?;
        let entry = SourceEntry {
            etag: outcome.etag.or(tag),
            size: outcome.size,
            sha256: outcome.sha256,
            read_at: self.read_at.clone(),
            text_bytes: outcome.text_bytes,
            rows_read: outcome.rows.rows_read,
            rows_written: outcome.rows.rows_written,
            rows_rejected: outcome.rows.rows_rejected,
            rows_filtered: outcome.rows.rows_filtered,
            partitions: outcome.partitions,
            variant: outcome.variant,
            archived: false,
            extra_columns: outcome.extra_columns,
        };
        if let Some(before) = self.edit.set_source(&key, Some(entry)).map_err(table_error)? {
            self.report.changed(&key, &before);
        }
        self.rejects.extend(outcome.rejects);
        Ok(())
    }

    /// Sets the entry of a source whose only change is its mark.
    pub fn marked(&mut self, key: &str, entry: SourceEntry) -> Result<(), RunError> {
        self.edit.set_source(key, Some(entry)).map(drop).map_err(table_error)
    }

    /// Removes a source.
    pub fn removed(&mut self, key: &str, entry: &SourceEntry) -> Result<(), RunError> {
        self.report.changed(key, entry);
        self.edit.set_rejects(key, None).map_err(table_error)?;
        self.edit.set_source(key, None).map(drop).map_err(table_error)
    }

    /// Replaces groups of a partition.
    ///
    /// # Errors
    /// If the rows of a new group differ from those of its sources.
    pub fn partition(&mut self, partition: UpdatedPartition) -> Result<(), RunError> {
        let UpdatedPartition { partition, replaced, made } = partition;
        let mut groups = Vec::with_capacity(made.len());
        for group in made {
            let was_read = |key: &str| self.sources.keys().position(key).is_some();
            self.placed.add(self.table.table, &partition, &group, was_read)?;
            groups.push(self.made.group(self.table.table, &partition, group)?);
        }
        self.edit.replace_groups(&partition, &replaced, groups).map_err(table_error)
    }

    /// The next manifest, and the result. `listed`: sources in the lake; `tables`: of the run.
    ///
    /// # Errors
    /// If a row of a source that was read is in no group, or twice.
    pub fn finish(self, found: &FoundRoot, head: RootHead, listed: u64, tables: usize) -> Result<Finished, RunError> {
        let Self { table, edit, mut made, rejects, report, placed, .. } = self;
        placed.check(table.table)?;
        let rebuild = edit.is_rebuild();
        let mut edited = edit.finish(found, head).map_err(table_error)?;
        if rebuild {
            output::retire_unknown(&table, found.readable(), &mut edited).map_err(table_error)?;
        }
        let new: BTreeSet<&str> = edited.made.files.iter().map(|file| file.key.as_str()).collect();
        made.files.retain(|key, _| new.contains(key.as_str()));
        let before = found.readable().map(|root| root.totals);
        let (totals, partitions) = (edited.root.totals, edited.partitions.clone());
        let result = report.finish(&TableReportEnd { totals, before, listed, partitions, tables });
        Ok(Finished { edited, made: made.files, rejects, result })
    }
}

impl ConvertedFiles<'_> {
    fn rejects(&mut self, table: &str, source: &str, file: &SpooledFile) -> StoredFile {
        let key = relative_rejects_key(table, source, &file.sha256);
        self.files.insert(key.clone(), file.clone());
        let (rows, size, sha256) = (file.rows, file.size, file.sha256.clone());
        StoredFile { key, rows, size, sha256, row_groups: 0, delta: None, iceberg: None }
    }

    fn group(&mut self, table: &str, partition: &str, group: UpdatedGroup) -> Result<WrittenGroup, RunError> {
        let files = group.files.into_iter().enumerate().map(|(nth, file)| {
            let key = relative_data_key(table, partition, &group.first, &file.sha256, nth);
            let (rows, size, row_groups) = (file.rows, file.size, file.row_groups as u32);
            let (delta, iceberg) = (self.describe)(&file)?;
            let (delta, iceberg) = (delta.map(Box::new), iceberg.map(Box::new));
            let sha256 = file.sha256.clone();
            let stored = StoredFile { key: key.clone(), rows, size, sha256, row_groups, delta, iceberg };
            self.files.insert(key, file);
            Ok(stored)
        });
        Ok(WrittenGroup { files: files.collect::<Result<_, RunError>>()?, segments: group.segments })
    }
}
