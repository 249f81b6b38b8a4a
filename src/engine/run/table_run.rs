//! Plans and converts one table, ready to be published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::archive;
use super::converter::Converter;
use super::edits::{Describe, Edits, Finished};
use super::lake::{Lake, check_not_being_written};
use super::prepared::PreparedTable;
use super::progress::RunCounters;
use super::published_files::PublishedFiles;
use super::request::RunRequest;
use super::result::{TableReport, TableReportEnd};
use super::sources::{self, SourceChanges};
use super::stager::Stager;
use super::update::{Update, UpdateError, UpdatedGroup, UpdatedPartition, Updater};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::relative_data_key;
use crate::domain::pipeline::{Mapping, TableFormat, WhenRemoved};
use crate::domain::plan::{fingerprint, layout};
use crate::domain::table_log::root::Root;
use crate::domain::table_schema::{StoredSchema, partition_sources};
use crate::domain::zones;
use crate::engine::convert::{
    BuildInputs, Conversion, ConvertError, ConvertProgress, Converted, OnFile, Resources, SourceList, SpooledFile,
};
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{FoundRoot, IcebergHead, Maps, RootHead, TableStore, mark_for_rebuild, recover};
use crate::runtime::rfc3339;

/// More changed sources are not merged with stored rows: the table is rebuilt.
const MERGED_SOURCES_MAX: usize = 200_000;

/// One table of a run.
pub(super) struct TableRun<'a> {
    pub request: &'a RunRequest<'a>,
    pub mapping: &'a Mapping,
    pub counters: &'a RunCounters<'a>,
    pub lake: &'a Lake,
}

/// The plan of a table before any source is read.
#[derive(Debug)]
pub(super) struct PlannedTable {
    found: FoundRoot,
    /// All sources are read and the manifest is replaced: a clean run, a changed fingerprint, or no usable manifest.
    rebuild: bool,
    pub sources: SourceChanges,
    fingerprint: String,
    layout: String,
}

impl TableRun<'_> {
    fn table(&self) -> TableStore<'_> {
        self.request.table(self.mapping.table.as_str())
    }

    /// Finds out which sources to read, and checks that they are complete. Removes leftovers of a dead run. `None` if
    /// that needs a listing of the whole lake.
    pub fn plan(&self) -> Result<Option<PlannedTable>, RunError> {
        let found = self.table().root().map_err(table_error)?;
        match self.plan_from(found.clone(), self.request.clean) {
            Err(_) if !self.request.clean && self.is_broken(&found) => self.plan_from(found, true),
            planned => planned,
        }
    }

    /// Whether a shard of the manifest is missing or doesn't match the root. Reads all of them, so it is called only after a
    /// failure.
    fn is_broken(&self, found: &FoundRoot) -> bool {
        let table = self.table();
        let Ok(broken) = found.readable().map_or(Ok(None), |root| table.broken_shard(root)) else { return false };
        if let Some(error) = &broken {
            tracing::warn!(table = table.table, %error, "manifest not usable; table will be rebuilt");
        }
        broken.is_some()
    }

    fn plan_from(&self, found: FoundRoot, clean: bool) -> Result<Option<PlannedTable>, RunError> {
        let request = self.request;
        let table = self.table();
        if let FoundRoot::Unusable { error, .. } = &found {
            tracing::warn!(table = table.table, %error, "manifest not usable; table will be rebuilt");
        }
        if !request.dry_run {
            recover(&table, found.readable(), request.lease).map_err(table_error)?;
        }
        // Without expressions nothing depends on the SQL engine, which is slow to start. A run without the engine's
        // version fails, since a guess would rebuild every table.
        let engine = match self.mapping.has_expressions() {
            true => request.expressions.version().map_err(|e| RunError::new(RunErrorCode::Internal, e.to_string()))?,
            false => String::new(),
        };
        let has_zones = self.mapping.has_expressions() || self.mapping.reads_zones();
        let zones = if has_zones { format!("\ntzdb {}", zones::database().id()) } else { String::new() };
        let fingerprint = fingerprint(self.mapping, &format!("{}\n{engine}{zones}", request.versions));
        let root = found.readable().filter(|root| !clean && root.fingerprint == fingerprint);
        let (rebuild, sources) = match root {
            Some(root) if self.lake.is_whole() || self.can_update_from_keys(root, &found) => {
                self.changes(&table, root)?
            }
            _ => (true, SourceChanges::default()),
        };
        if rebuild && !self.lake.is_whole() {
            return Ok(None);
        }
        let (rebuild, sources) = if rebuild { self.all(&table, &found)? } else { (false, sources) };
        check_not_being_written(request, table.table, sources.read.keys())?;
        Ok(Some(PlannedTable { rebuild, found, sources, fingerprint, layout: layout(self.mapping) }))
    }

    /// Whether a table can be updated from some keys alone: no others are affected.
    fn can_update_from_keys(&self, root: &Root, found: &FoundRoot) -> bool {
        let keeps = self.mapping.when_removed == WhenRemoved::KeepRows;
        root.restored.is_none() && root.schema == self.schema(found) && (keeps || root.totals.archived == 0)
    }

    /// All sources, to rebuild the table, or to merge with its stored rows of archived sources if these are still
    /// right.
    fn all(&self, table: &TableStore<'_>, found: &FoundRoot) -> Result<(bool, SourceChanges), RunError> {
        let all = sources::all(self.request, self.mapping, self.lake)?;
        let stored = found.readable().filter(|root| archive::may_merge(self.request, self.mapping, root));
        if let Some(root) = stored.filter(|_| all.read.len() <= MERGED_SOURCES_MAX) {
            let (_, SourceChanges { archived, removed, .. }) = self.changes(table, root)?;
            return Ok((false, SourceChanges { archived, removed, ..all }));
        }
        archive::check_rebuild(table, self.mapping, self.lake, found, self.request.clean)?;
        Ok((true, all))
    }

    /// The changes since `root` was committed, and whether the table must be rebuilt.
    fn changes(&self, table: &TableStore<'_>, root: &Root) -> Result<(bool, SourceChanges), RunError> {
        let (mut maps, known) = (Maps::of(Some(root)), root.totals.sources - root.totals.archived);
        let sources = sources::changes(self.request, table, self.mapping, self.lake, &mut maps, known)?;
        // Files of others are decoded in child processes only. A merge keeps the changes in memory; a rebuild doesn't.
        let rebuild = (root.is_foreign && sources.changes_files()) || sources.read.len() > MERGED_SOURCES_MAX;
        Ok((rebuild, sources))
    }

    /// Converts the planned table. `scratch`: a folder for this table; new files go to
    /// `stager` as they are finished.
    ///
    /// # Errors
    /// `SourceChanged` if the lake must be looked at again.
    pub fn prepare<C: Converter>(
        &self,
        converter: &C,
        planned: PlannedTable,
        scratch: &Path,
        stager: &Stager<'_, '_>,
    ) -> Result<PreparedTable, ConvertError> {
        self.counters.check().map_err(ConvertError::Stopped)?;
        let schema = self.schema(&planned.found);
        let is_same_schema = planned.found.readable().is_some_and(|root| root.schema == schema);
        let is_published = self.is_published(planned.found.readable())?;
        if !planned.rebuild && planned.sources.is_empty() && is_same_schema && is_published {
            return Ok(self.unchanged(planned));
        }
        let prepared = match planned.rebuild {
            true => self.build(converter, planned, schema, scratch, stager)?,
            false => {
                let (found, read) = (planned.found.clone(), Arc::clone(&planned.sources.read));
                match self.update(converter, planned, schema, scratch) {
                    Err(ConvertError::Failed(_)) if !self.request.dry_run && self.is_broken(&found) => {
                        mark_for_rebuild(&self.table(), self.request.lease).map_err(table_error)?;
                        let key = read.keys().iter().next().unwrap_or_default();
                        return Err(ConvertError::SourceChanged { key: key.to_owned() });
                    }
                    updated => updated?,
                }
            }
        };
        if !self.request.dry_run {
            let made = prepared.edited.iter().flat_map(|edited| &edited.made.files);
            for file in made {
                if let Some(spooled) = prepared.made.get(&file.key) {
                    stager.add(&file.key, spooled);
                }
            }
        }
        Ok(prepared)
    }

    /// Makes the table of all its sources.
    fn build<C: Converter>(
        &self,
        converter: &C,
        planned: PlannedTable,
        schema: StoredSchema,
        scratch: &Path,
        stager: &Stager<'_, '_>,
    ) -> Result<PreparedTable, ConvertError> {
        let sources = self.begin_reading(&planned.sources.read)?;
        let mut edits = self.edits(converter, &planned)?;
        let made = |partition: &str, first: u32, nth: usize, file: &SpooledFile| {
            if self.request.dry_run {
                // A file that remains only takes space until the run ends.
                let _ = std::fs::remove_file(&file.path);
                return;
            }
            let first = sources.keys().get(first as usize);
            stager.add(&relative_data_key(&self.mapping.table, partition, first, &file.sha256, nth), file);
        };
        let converted = match sources.is_empty() {
            true => Converted::default(),
            false => self.with_conversion(scratch, &made, |conversion| {
                converter.build(conversion, BuildInputs::all(sources), &mut |outcome| edits.read(outcome))
            })?,
        };
        let keys = converted.keys;
        for (partition, groups) in converted.partitions {
            let made = groups.into_iter().map(|group| UpdatedGroup::of(group, &keys)).collect();
            edits.partition(UpdatedPartition { partition, replaced: BTreeMap::new(), made })?;
        }
        Ok(self.finish(planned, schema, edits)?)
    }

    /// Merges changed sources with stored rows.
    fn update<C: Converter>(
        &self,
        converter: &C,
        mut planned: PlannedTable,
        schema: StoredSchema,
        scratch: &Path,
    ) -> Result<PreparedTable, ConvertError> {
        loop {
            let sources = self.begin_reading(&planned.sources.read)?;
            let mut maps = Maps::of(planned.found.readable());
            for (key, entry) in planned.sources.marked() {
                maps.sources.set(key.clone(), Some(entry), &mut self.table().reader()).map_err(table_error)?;
            }
            let stored = scratch.join("stored");
            let updated = self.with_conversion(scratch, &|_, _, _, _| {}, |conversion| {
                let table = self.table();
                let mut updater = Updater { table, mapping: self.mapping, conversion, maps, scratch: &stored };
                updater.update(converter, sources, &planned.sources.removed)
            });
            match updated {
                Ok(Update { changed, partitions }) => {
                    let mut edits = self.edits(converter, &planned)?;
                    let sources = &planned.sources;
                    sources.marked().try_for_each(|(key, entry)| edits.marked(key, entry))?;
                    changed.into_iter().try_for_each(|outcome| edits.read(outcome))?;
                    sources.removed.iter().try_for_each(|(key, entry)| edits.removed(key, entry))?;
                    partitions.into_iter().try_for_each(|partition| edits.partition(partition))?;
                    return Ok(self.finish(planned, schema, edits)?);
                }
                Err(UpdateError::Lost(keys)) => self.add_sources_to_read(&mut planned, keys)?,
                Err(UpdateError::Failed(error)) => return Err(error),
            }
        }
    }

    /// Adds sources to those that are read, since their stored rows are lost: as they are in the lake now, or to those that
    /// are removed if they left it.
    fn add_sources_to_read(&self, planned: &mut PlannedTable, keys: Vec<String>) -> Result<(), RunError> {
        let mut maps = Maps::of(planned.found.readable());
        let sources = &mut planned.sources;
        let mut lost: BTreeSet<String> =
            keys.into_iter().filter(|key| sources.read.keys().position(key).is_none()).collect();
        lost.retain(|key| sources.removed.iter().all(|(removed, _)| removed != key));
        if lost.is_empty() {
            let message = format!("table `{}`: the rows of stored files can't be rebuilt", self.mapping.table);
            return Err(RunError::new(RunErrorCode::Internal, message).detail("do a clean run"));
        }
        let read = sources::read_again(self.request, self.lake.some_sources(self.request, self.mapping, &lost)?)?;
        let mut gone = Vec::new();
        for key in lost.into_iter().filter(|key| read.keys().position(key).is_none()) {
            let entry = maps.sources.get(&key, &mut self.table().reader()).map_err(table_error)?.cloned();
            gone.extend(entry.map(|entry| (key, entry)));
        }
        archive::check_lost(self.mapping, &gone)?;
        sources.removed.extend(gone);
        sources.read = Arc::new(sources.read.with(&read));
        Ok(())
    }

    fn unchanged(&self, planned: PlannedTable) -> PreparedTable {
        let totals = planned.found.readable().map(|root| root.totals).unwrap_or_default();
        let before = planned.found.readable().map(|root| root.totals);
        let end = TableReportEnd { totals, before, listed: planned.sources.listed, ..TableReportEnd::default() };
        PreparedTable {
            name: self.mapping.table.as_str().to_owned(),
            found: planned.found,
            edited: None,
            totals,
            made: BTreeMap::new(),
            rejects: Vec::new(),
            limits: self.mapping.rejects,
            keep_history: self.mapping.keep_history,
            result: TableReport::default().finish(&end),
        }
    }

    /// The schema of the next manifest's files. With a prefix some of the globs' sources may be left to a later run.
    fn schema(&self, found: &FoundRoot) -> StoredSchema {
        let schema = StoredSchema::of(self.mapping);
        match (self.request.prefix, found.readable()) {
            ("", _) => schema,
            // Sources outside the prefix stay as they were read.
            (_, Some(root)) => {
                StoredSchema { globs: root.schema.globs.clone(), variants: root.schema.variants.clone(), ..schema }
            }
            (_, None) => StoredSchema { globs: None, ..schema },
        }
    }

    fn with_conversion<T>(&self, scratch: &Path, made: &OnFile<'_>, convert: impl FnOnce(&Conversion<'_>) -> T) -> T {
        let resources = Resources { scratch: scratch.to_owned(), ..self.request.resources.clone() };
        convert(&Conversion {
            store: self.request.store,
            slug: self.request.slug(),
            mapping: self.mapping,
            expressions: self.request.expressions,
            resources: &resources,
            progress: self.counters,
            made,
            job_id: self.request.job_id,
        })
    }

    /// The sources to read next. Checks again that they are complete, since converting other tables may have taken
    /// long.
    fn begin_reading<'s>(&self, sources: &'s Arc<SourceList>) -> Result<&'s Arc<SourceList>, RunError> {
        check_not_being_written(self.request, self.mapping.table.as_str(), sources.keys())?;
        self.counters.expect_sources(sources.len() as u64, sources.bytes());
        Ok(sources)
    }

    /// Whether the table has a Delta log from now on.
    fn has_log(&self) -> bool {
        self.mapping.publish.contains(&TableFormat::Delta)
    }

    /// The head of the table's next Iceberg metadata, if it has any.
    fn iceberg(&self) -> Result<Option<IcebergHead>, RunError> {
        if !self.mapping.publish.contains(&TableFormat::Iceberg) {
            return Ok(None);
        }
        let location = self.table().location().map_err(table_error)?;
        let catalog = self.request.catalog.map(|catalog| catalog.name().to_owned());
        Ok(Some(IcebergHead { location, partitions: partition_sources(self.mapping), catalog }))
    }

    /// Whether the table is published in the formats of the config, and in no other.
    fn is_published(&self, root: Option<&Root>) -> Result<bool, RunError> {
        let has_log = root.is_some_and(|root| root.delta.is_some());
        let iceberg = root.and_then(|root| root.iceberg.as_ref());
        let is_same = match (iceberg, self.iceberg()?) {
            (None, None) => true,
            (Some(found), Some(own)) => found.continues(&own.location) && found.catalog == own.catalog,
            (Some(_), None) | (None, Some(_)) => false,
        };
        Ok(has_log == self.has_log() && is_same)
    }

    fn edits<'s, C: Converter>(&'s self, converter: &'s C, planned: &PlannedTable) -> Result<Edits<'s>, RunError> {
        let PlannedTable { found, rebuild, sources, .. } = planned;
        let read_at = rfc3339(self.lake.listed_at);
        let made_ms = self.lake.listed_at.timestamp_millis();
        let published = PublishedFiles::of(self.mapping, made_ms);
        let describe: Box<Describe<'s>> = Box::new(move |file| converter.describe(file, &published));
        Edits::new(self.table(), found, *rebuild, self.request.job_id, &sources.read, read_at, describe)
    }

    fn finish(&self, planned: PlannedTable, schema: StoredSchema, edits: Edits<'_>) -> Result<PreparedTable, RunError> {
        let PlannedTable { found, sources, fingerprint, layout, .. } = planned;
        let head = RootHead {
            fence: self.request.lease.fence(),
            job_id: self.request.job_id.to_owned(),
            committed_at: rfc3339(self.lake.listed_at),
            fingerprint,
            layout,
            schema,
            delta: self.has_log(),
            iceberg: self.iceberg()?,
        };
        let tables = self.request.pipeline.mappings.len();
        let Finished { edited, made, rejects, result } = edits.finish(&found, head, sources.listed, tables)?;
        Ok(PreparedTable {
            name: self.mapping.table.as_str().to_owned(),
            totals: edited.root.totals,
            found,
            edited: Some(edited),
            made,
            rejects,
            limits: self.mapping.rejects,
            keep_history: self.mapping.keep_history,
            result,
        })
    }
}
