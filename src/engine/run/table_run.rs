//! Plans and converts one table, ready to be published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::accounting;
use super::converter::Converter;
use super::lake::{Lake, check_not_being_written};
use super::output;
use super::prepared::PreparedTable;
use super::progress::RunCounters;
use super::request::RunRequest;
use super::result::ResultOf;
use super::sources::{self, SourceChanges};
use super::stager::Stager;
use super::update::{NoUpdate, Update, UpdatedGroup, UpdatedPartition, Updater};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::{relative_data_key, relative_rejects_key};
use crate::domain::pipeline::Mapping;
use crate::domain::plan::{fingerprint, layout};
use crate::domain::table_log::entries::{SourceEntry, StoredFile};
use crate::domain::table_schema::StoredSchema;
use crate::domain::zones;
use crate::engine::convert::{
    BuildInputs, Conversion, ConvertError, ConvertProgress, Converted, ReadSource, Resources, SourceOutcome, SourceRef,
    SpooledFile,
};
use crate::engine::run_error::table_error;
use crate::pipelines::tables::{Edit, FoundRoot, MadeGroup, Maps, RootHead, TableStore, recover};
use crate::runtime::rfc3339;

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
    /// All sources are read and the manifest is made anew: a clean run, a changed fingerprint, no usable manifest.
    anew: bool,
    sources: SourceChanges,
    fingerprint: String,
    layout: String,
}

/// The files that a conversion made, by their keys.
#[derive(Default)]
struct Made {
    files: BTreeMap<String, SpooledFile>,
}

impl TableRun<'_> {
    fn table(&self) -> TableStore<'_> {
        TableStore { store: self.request.store, slug: self.request.slug(), table: self.mapping.table.as_str() }
    }

    /// Finds out which sources to read, and checks that they are complete. Removes what a run left behind that died.
    pub fn plan(&self) -> Result<PlannedTable, RunError> {
        let request = self.request;
        let table = self.table();
        let found = table.root().map_err(table_error)?;
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
        let root = found.readable().filter(|root| !request.clean && root.fingerprint == fingerprint);
        let mut maps = root.map(|root| Maps::of(Some(root)));
        let mut sources = sources::changes(request, &table, self.mapping, self.lake, maps.as_ref())?;
        // Files of others are decoded in child processes only.
        if root.is_some_and(|root| root.is_foreign) && !sources.is_empty() {
            maps = None;
            sources = sources::changes(request, &table, self.mapping, self.lake, None)?;
        }
        check_not_being_written(request, table.table, sources.read.iter().map(|source| &source.key))?;
        Ok(PlannedTable { anew: maps.is_none(), found, sources, fingerprint, layout: layout(self.mapping) })
    }

    /// Converts the planned table, planning it first if necessary. `scratch`: a folder for this table; new files go to
    /// `stager` as they are finished.
    ///
    /// # Errors
    /// `SourceChanged` if the lake must be listed again.
    pub fn prepare<C: Converter>(
        &self,
        converter: &C,
        planned: Option<PlannedTable>,
        scratch: &Path,
        stager: &Stager<'_, '_>,
    ) -> Result<PreparedTable, ConvertError> {
        self.counters.check().map_err(ConvertError::Stopped)?;
        let planned = planned.map_or_else(|| self.plan(), Ok)?;
        let schema = self.schema(&planned.found);
        let is_same_schema = planned.found.readable().is_some_and(|root| root.schema == schema);
        if !planned.anew && planned.sources.is_empty() && is_same_schema {
            return Ok(self.unchanged(planned));
        }
        let prepared = match planned.anew {
            true => self.build(converter, planned, schema, scratch)?,
            false => self.update(converter, planned, schema, scratch)?,
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
    ) -> Result<PreparedTable, ConvertError> {
        let sources = self.begin_reading(&planned.sources.read)?;
        let read = sources.iter().map(|source| ReadSource { source: source.clone(), only: None }).collect();
        let converted = match sources.is_empty() {
            true => Converted::default(),
            false => self.with_conversion(scratch, |conversion| {
                converter.build(conversion, BuildInputs { read, ..BuildInputs::default() })
            })?,
        };
        let outcomes = outcomes(&planned.sources.read, &converted.sources)?;
        let groups = converted.partitions.into_iter().map(|(partition, groups)| UpdatedPartition {
            partition,
            replaced: BTreeMap::new(),
            made: groups.into_iter().map(|group| UpdatedGroup::of(group, &converted.keys)).collect(),
        });
        let groups: Vec<UpdatedPartition> = groups.collect();
        accounting::check(self.mapping.table.as_str(), &outcomes)?;
        accounting::check_groups(self.mapping.table.as_str(), &outcomes, &groups, true)?;
        Ok(self.edit(planned, schema, outcomes, groups)?)
    }

    /// Merges what changed with what is stored.
    fn update<C: Converter>(
        &self,
        converter: &C,
        mut planned: PlannedTable,
        schema: StoredSchema,
        scratch: &Path,
    ) -> Result<PreparedTable, ConvertError> {
        loop {
            let sources = self.begin_reading(&planned.sources.read)?;
            let maps = Maps::of(planned.found.readable());
            let stored = scratch.join("stored");
            let updated = self.with_conversion(scratch, |conversion| {
                let table = self.table();
                let mut updater = Updater { table, mapping: self.mapping, conversion, maps, scratch: &stored };
                updater.update(converter, sources, &planned.sources.removed)
            });
            match updated {
                Ok(Update { changed, partitions }) => {
                    let outcomes = outcomes(&planned.sources.read, &changed)?;
                    accounting::check(self.mapping.table.as_str(), &outcomes)?;
                    accounting::check_groups(self.mapping.table.as_str(), &outcomes, &partitions, false)?;
                    return Ok(self.edit(planned, schema, outcomes, partitions)?);
                }
                Err(NoUpdate::Lost(keys)) => self.read_too(&mut planned, keys)?,
                Err(NoUpdate::Failed(error)) => return Err(error),
            }
        }
    }

    /// Adds sources to those that are read, since their stored rows are lost: as they are in the lake now, or to those that
    /// are removed if they left it.
    fn read_too(&self, planned: &mut PlannedTable, keys: Vec<String>) -> Result<(), RunError> {
        let mut maps = Maps::of(planned.found.readable());
        let sources = &mut planned.sources;
        let known: BTreeSet<&str> = sources.read.iter().map(|source| source.key.as_str()).collect();
        let mut lost: BTreeSet<String> = keys.into_iter().filter(|key| !known.contains(key.as_str())).collect();
        lost.retain(|key| sources.removed.iter().all(|(removed, _)| removed != key));
        if lost.is_empty() {
            let message = format!("table `{}`: the rows of stored files can't be made anew", self.mapping.table);
            return Err(RunError::new(RunErrorCode::Internal, message).detail("do a clean run"));
        }
        let listed = self.lake.sources(self.mapping)?.into_iter().filter(|listed| lost.contains(&listed.key));
        let read = sources::with_tags(self.request, listed.map(|listed| (listed, None)).collect())?;
        for key in lost.into_iter().filter(|key| read.iter().all(|source| source.key != *key)) {
            let entry = maps.sources.get(&key, &mut self.table().reader()).map_err(table_error)?.cloned();
            sources.removed.extend(entry.map(|entry| (key, entry)));
        }
        sources.read.extend(read);
        sources.read.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(())
    }

    fn unchanged(&self, planned: PlannedTable) -> PreparedTable {
        let totals = planned.found.readable().map(|root| root.totals).unwrap_or_default();
        let before = planned.found.readable().map(|root| root.totals);
        let result = ResultOf { totals, before, listed: planned.sources.listed, ..ResultOf::default() };
        PreparedTable {
            name: self.mapping.table.as_str().to_owned(),
            found: planned.found,
            edited: None,
            totals,
            made: BTreeMap::new(),
            rejects: Vec::new(),
            limits: self.mapping.rejects,
            result: result.table_result(),
        }
    }

    /// The schema of the next manifest's files. With a prefix some of the globs' sources may be left to a later run.
    fn schema(&self, found: &FoundRoot) -> StoredSchema {
        let globs = match self.request.prefix {
            "" => Some(self.mapping.files.clone()),
            _ => found.readable().and_then(|root| root.schema.globs.clone()),
        };
        StoredSchema { globs, ..StoredSchema::of(self.mapping) }
    }

    fn with_conversion<T>(&self, scratch: &Path, convert: impl FnOnce(&Conversion<'_>) -> T) -> T {
        let resources = Resources { scratch: scratch.to_owned(), ..self.request.resources.clone() };
        convert(&Conversion {
            store: self.request.store,
            slug: self.request.slug(),
            mapping: self.mapping,
            expressions: self.request.expressions,
            resources: &resources,
            progress: self.counters,
            made: &|_, _, _| {},
            job_id: self.request.job_id,
        })
    }

    /// The sources to read next. Checks again that they are complete, since converting other tables may have taken
    /// long.
    fn begin_reading<'s>(&self, sources: &'s [SourceRef]) -> Result<&'s [SourceRef], RunError> {
        check_not_being_written(self.request, self.mapping.table.as_str(), sources.iter().map(|source| &source.key))?;
        self.counters.expect_sources(sources.len() as u64, sources.iter().map(|s| s.size).sum());
        Ok(sources)
    }

    /// Edits the manifest: the next one, and the result.
    fn edit(
        &self,
        planned: PlannedTable,
        schema: StoredSchema,
        outcomes: BTreeMap<String, SourceOutcome>,
        partitions: Vec<UpdatedPartition>,
    ) -> Result<PreparedTable, RunError> {
        let (request, table) = (self.request, self.table());
        let PlannedTable { found, anew, sources, fingerprint, layout } = planned;
        let mut edit = Edit::new(table, &found, anew, request.job_id).map_err(table_error)?;
        let mut made = Made::default();
        for (key, entry) in &sources.returned {
            let entry = SourceEntry { archived: false, ..entry.clone() };
            edit.set_source(key, Some(entry)).map_err(table_error)?;
        }
        for (key, outcome) in &outcomes {
            let rejects = outcome.rejects.as_ref().map(|file| made.rejects(table.table, key, file));
            edit.set_rejects(key, rejects).map_err(table_error)?;
            edit.set_source(key, Some(self.source_entry(outcome))).map_err(table_error)?;
        }
        for (key, _) in &sources.removed {
            edit.set_rejects(key, None).map_err(table_error)?;
            edit.set_source(key, None).map_err(table_error)?;
        }
        for UpdatedPartition { partition, replaced, made: groups } in partitions {
            let groups = groups.into_iter().map(|group| made.group(table.table, &partition, group)).collect();
            edit.replace_groups(&partition, &replaced, groups).map_err(table_error)?;
        }
        let head = RootHead {
            fence: request.lease.fence(),
            job_id: request.job_id.to_owned(),
            committed_at: rfc3339(self.lake.listed_at),
            fingerprint,
            layout,
            schema,
        };
        let mut edited = edit.finish(&found, head).map_err(table_error)?;
        if anew {
            output::retire_unknown(&table, &mut edited).map_err(table_error)?;
        }
        let new: BTreeSet<&str> = edited.made.files.iter().map(|file| file.key.as_str()).collect();
        made.files.retain(|key, _| new.contains(key.as_str()));
        let result = ResultOf {
            totals: edited.root.totals,
            before: found.readable().map(|root| root.totals),
            listed: sources.listed,
            outcomes: outcomes.values().collect(),
            removed: sources.removed.iter().map(|(key, entry)| (key.as_str(), &entry.partitions)).collect(),
            partitions: edited.partitions.clone(),
            tables: request.pipeline.mappings.len(),
        };
        let result = result.table_result();
        Ok(PreparedTable {
            name: table.table.to_owned(),
            totals: edited.root.totals,
            found,
            edited: Some(edited),
            made: made.files,
            rejects: outcomes.into_values().filter_map(|outcome| outcome.rejects).collect(),
            limits: self.mapping.rejects,
            result,
        })
    }

    fn source_entry(&self, outcome: &SourceOutcome) -> SourceEntry {
        SourceEntry {
            etag: outcome.etag.clone(),
            size: outcome.size,
            sha256: outcome.sha256.clone(),
            read_at: rfc3339(self.lake.listed_at),
            text_bytes: outcome.text_bytes,
            rows_read: outcome.rows.rows_read,
            rows_written: outcome.rows.rows_written,
            rows_rejected: outcome.rows.rows_rejected,
            rows_filtered: outcome.rows.rows_filtered,
            partitions: outcome.partitions.clone(),
            archived: false,
        }
    }
}

impl Made {
    fn rejects(&mut self, table: &str, source: &str, file: &SpooledFile) -> StoredFile {
        let key = relative_rejects_key(table, source, &file.sha256);
        self.files.insert(key.clone(), file.clone());
        StoredFile { key, rows: file.rows, size: file.size, sha256: file.sha256.clone(), row_groups: 0 }
    }

    fn group(&mut self, table: &str, partition: &str, group: UpdatedGroup) -> MadeGroup {
        let count = group.files.len();
        let files = group.files.into_iter().enumerate().map(|(nth, file)| {
            let key = relative_data_key(table, partition, &group.first, &file.sha256, (nth, count));
            let (rows, size, row_groups) = (file.rows, file.size, file.row_groups as u32);
            let stored = StoredFile { key: key.clone(), rows, size, sha256: file.sha256.clone(), row_groups };
            self.files.insert(key, file);
            stored
        });
        MadeGroup { files: files.collect(), segments: group.segments }
    }
}

/// The outcomes of all sources read, by key; each is the source that was listed.
fn outcomes(read: &[SourceRef], found: &[SourceOutcome]) -> Result<BTreeMap<String, SourceOutcome>, ConvertError> {
    let planned: BTreeMap<&str, &SourceRef> = read.iter().map(|source| (source.key.as_str(), source)).collect();
    let mut outcomes = BTreeMap::new();
    for outcome in found {
        let key = &outcome.rows.source;
        let mut outcome = outcome.clone();
        let planned = planned.get(key.as_str());
        let tag = planned.and_then(|planned| planned.etag.as_ref()).map(|etag| etag.0.clone());
        let is_same_tag = tag.as_ref().zip(outcome.etag.as_ref()).is_none_or(|(planned, found)| planned == found);
        if planned.is_none_or(|planned| planned.size != outcome.size) || !is_same_tag {
            return Err(ConvertError::SourceChanged { key: key.clone() });
        }
        outcome.etag = outcome.etag.or(tag);
        outcomes.insert(key.clone(), outcome);
    }
    Ok(outcomes)
}
