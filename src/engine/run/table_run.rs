//! Plans and converts one table, ready to be published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::accounting;
use super::changes;
use super::converter::Converter;
use super::lake::{Lake, check_not_being_written, source_refs};
use super::manifests;
use super::output;
use super::prepared::{ManifestState, PreparedTable};
use super::progress::RunCounters;
use super::request::{PARALLEL_HEADS_MAX, RunRequest};
use super::stager::Stager;
use crate::domain::job::{PartitionChanges, RunError, RunErrorCode, TableChanges, TableResult};
use crate::domain::layout::{pipeline_prefix, relative_part_key, relative_rejects_key};
use crate::domain::manifest::{FileEntry, Manifest, SourceEntry, partition_of};
use crate::domain::pipeline::Mapping;
use crate::domain::plan::{
    BuiltTable, CleanRunRequired, ListedObject, Listing, Plan, PlanInput, Publication, fingerprint, layout,
    next_manifest, publication,
};
use crate::domain::table_schema::StoredSchema;
use crate::domain::zones;
use crate::engine::convert::{
    Conversion, ConvertError, ConvertProgress, Converted, Resources, SourceOutcome, SourceRef, SpooledFile,
};
use crate::engine::run_error::store_error;
use crate::ports::store::Bucket;
use crate::runtime::rfc3339;
use crate::sync::parallel_map;

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
    state: ManifestState,
    old: Option<Manifest>,
    output: Listing,
    sources: Listing,
    fingerprint: String,
    layout: String,
    plan: Plan,
}

/// A conversion and the partitions it affects.
struct TableConversion {
    touched: BTreeSet<String>,
    /// Every source read.
    outcomes: BTreeMap<String, SourceOutcome>,
    converted: Converted,
}

impl TableRun<'_> {
    /// Decides which changed sources to read, and checks that they are complete.
    pub fn plan(&self) -> Result<PlannedTable, RunError> {
        let request = self.request;
        let table = self.mapping.table.as_str();
        let found = manifests::read(request.store, request.slug(), table)?;
        let state = found.as_ref().map_or(ManifestState::Absent, |f| ManifestState::Present(f.etag.clone()));
        let old = found.and_then(|f| f.manifest);
        let output = output::list(request, table)?;
        let sources = self.lake.sources(request.store, self.mapping, old.as_ref())?;
        // Without expressions nothing depends on the SQL engine, which is slow to start. A run without the engine's
        // version fails, since a guess would rebuild every table.
        let engine = match self.mapping.has_expressions() {
            true => request.expressions.version().map_err(|e| RunError::new(RunErrorCode::Internal, e.to_string()))?,
            false => String::new(),
        };
        let has_zones = self.mapping.has_expressions() || self.mapping.reads_zones();
        let zones = if has_zones { format!("\ntzdb {}", zones::database().id()) } else { String::new() };
        let fingerprint = fingerprint(self.mapping, &format!("{}\n{engine}{zones}", request.versions));
        let layout = layout(self.mapping);
        let now = self.situation(old.as_ref(), &fingerprint, &layout, &sources, &output);
        let plan = Plan::new(&now).map_err(|e| clean_run_required(table, &e))?;
        check_not_being_written(request, table, &plan.changed)?;
        Ok(PlannedTable { state, old, output, sources, fingerprint, layout, plan })
    }

    fn situation<'s>(
        &'s self,
        manifest: Option<&'s Manifest>,
        fingerprint: &'s str,
        layout: &'s str,
        sources: &'s Listing,
        output: &'s Listing,
    ) -> PlanInput<'s> {
        PlanInput {
            table: self.mapping.table.as_str(),
            manifest,
            fingerprint,
            layout,
            sources,
            lake: &self.lake.keys,
            output,
            prefix: self.request.prefix,
            clean: self.request.clean,
        }
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
        let request = self.request;
        let table = self.mapping.table.as_str();
        self.counters.check().map_err(ConvertError::Stopped)?;
        let planned = planned.map_or_else(|| self.plan(), Ok)?;
        let PlannedTable { state, old, output: before, sources, fingerprint, layout, mut plan } = planned;
        let mut output = before.clone();
        let now = self.situation(old.as_ref(), &fingerprint, &layout, &sources, &before);
        if plan.is_noop(&now) {
            let new = || Manifest { fence: request.lease.fence(), ..Manifest::new(table, &fingerprint, &layout) };
            let next = old.clone().unwrap_or_else(new);
            let mut result = table_result(&next, &Publication::default(), &BTreeMap::new(), sources.len());
            result.rows_before = old.as_ref().map(changes::rows);
            let mut prepared = self.prepared(state, old, next, output, result);
            // Fingerprint and layout match the mapping, so the files match it too.
            prepared.next.schema = Some(match prepared.next.schema.take() {
                Some(schema) => StoredSchema { globs: self.globs(Some(&schema)), ..schema },
                None => self.schema(&prepared.next, None),
            });
            return Ok(prepared);
        }
        let TableConversion { touched, outcomes, converted } =
            self.convert(converter, &now, &mut plan, scratch, stager)?;
        accounting::check(table, &outcomes, &converted)?;
        let built = self.entries(&outcomes, &converted);
        let mut next = next_manifest(&now, &plan, &touched, built, request.job_id, request.lease.fence());
        next.manifest.schema = Some(self.schema(&next.manifest, old.as_ref()));
        let lost = match &old {
            Some(old) => output::verify_doubtful(request, old, &before, &mut next)?,
            None => 0,
        };
        let made = self.made(&outcomes, &converted);
        self.fill_tags(&mut output, made.keys())?;
        let keys = made.keys().cloned().collect();
        let (job_id, fence) = (request.job_id, request.lease.fence());
        let publication = publication(old.as_ref(), &next.manifest, &keys, &output, job_id, fence);
        let mut result = table_result(&next.manifest, &publication, &outcomes, sources.len());
        result.partitions_deleted = next.deleted.len() as u64;
        result.partitions_lost = lost;
        result.rows_before = old.as_ref().map(changes::rows);
        result.changes = changes::between(old.as_ref(), &next.manifest, request.pipeline.mappings.len());
        result.planned.delete = next.deleted.into_iter().collect();
        let mut prepared = self.prepared(state, old, next.manifest, output, result);
        prepared.publication = publication;
        prepared.made = made;
        prepared.rejects = outcomes.into_values().filter_map(|o| o.rejects).collect();
        prepared.is_unchanged = false;
        Ok(prepared)
    }

    /// The schema of the next manifest's files; `old`: the previous manifest.
    fn schema(&self, next: &Manifest, old: Option<&Manifest>) -> StoredSchema {
        let earlier = old.and_then(|old| old.schema.as_ref());
        let schema = StoredSchema { globs: self.globs(earlier), ..StoredSchema::of(self.mapping) };
        match next.partitions.values().any(|partition| partition.retained) {
            true => schema.with_older_files(earlier),
            false => schema,
        }
    }

    /// The globs that all sources of the next manifest match. With a prefix some may be left to a later run.
    fn globs(&self, earlier: Option<&StoredSchema>) -> Option<Vec<String>> {
        match self.request.prefix {
            "" => Some(self.mapping.files.clone()),
            _ => earlier.and_then(|earlier| earlier.globs.clone()),
        }
    }

    fn prepared(
        &self,
        state: ManifestState,
        old: Option<Manifest>,
        next: Manifest,
        output: Listing,
        result: TableResult,
    ) -> PreparedTable {
        PreparedTable {
            state,
            old,
            next,
            output,
            result,
            publication: Publication::default(),
            made: BTreeMap::new(),
            rejects: Vec::new(),
            limits: self.mapping.rejects,
            is_unchanged: true,
        }
    }

    fn convert<C: Converter>(
        &self,
        converter: &C,
        now: &PlanInput<'_>,
        plan: &mut Plan,
        scratch: &Path,
        stager: &Stager<'_, '_>,
    ) -> Result<TableConversion, ConvertError> {
        let table = self.mapping.table.as_str();
        let made = |partition: &str, at: usize, file: &SpooledFile| {
            let key = relative_part_key(table, partition, at);
            let before = now.manifest.and_then(|m| m.partitions.get(partition));
            let same = |f: &FileEntry| f.key == key && f.sha256 == file.sha256;
            // Files that exist already will most likely not be written.
            if !self.request.dry_run && !before.is_some_and(|p| p.files.iter().any(same)) {
                stager.add(&key, file);
            }
        };
        let resources = Resources { scratch: scratch.to_owned(), ..self.request.resources.clone() };
        let conversion = Conversion {
            store: self.request.store,
            slug: self.request.slug(),
            mapping: self.mapping,
            expressions: self.request.expressions,
            resources: &resources,
            progress: self.counters,
            made: &made,
            job_id: self.request.job_id,
        };
        if plan.rebuilds_all(now) {
            let sources = self.begin_reading(now, &plan.changed)?;
            let converted = match sources.is_empty() {
                true => Converted::default(),
                false => converter.build(&conversion, &sources, None, None)?,
            };
            let outcomes = self.outcomes(&[], &converted, now)?;
            let has = partitions_of(&outcomes);
            let mut touched = plan.affected_partitions(now, &has);
            // Sources excluded by a prefix can only be removed ones here, which are not read.
            while let required = plan.required_sources(now, &touched)
                && !required.is_empty()
            {
                required.into_iter().for_each(|key| plan.include(now, key));
                touched = plan.affected_partitions(now, &has);
            }
            return Ok(TableConversion { touched, outcomes, converted });
        }
        let (buffered, buffered_outcomes, touched) = self.buffer_changed(converter, &conversion, now, plan)?;
        let contributors = plan.contributors(now, &touched);
        let sources = self.begin_reading(now, &contributors)?;
        let converted = match sources.is_empty() && buffered.is_none() {
            true => Converted::default(),
            false => converter.build(&conversion, &sources, buffered, Some(&touched))?,
        };
        let outcomes = self.outcomes(&buffered_outcomes, &converted, now)?;
        self.check_contributors(now, &contributors, &outcomes)?;
        Ok(TableConversion { touched, outcomes, converted })
    }

    /// Reads the changed sources. If they touch partitions with old rows of changed sources that the prefix excluded,
    /// these are included and all are read again.
    #[expect(clippy::type_complexity, reason = "three things that only exist together, used once")]
    fn buffer_changed<C: Converter>(
        &self,
        converter: &C,
        conversion: &Conversion<'_>,
        now: &PlanInput<'_>,
        plan: &mut Plan,
    ) -> Result<(Option<C::Buffered>, Vec<SourceOutcome>, BTreeSet<String>), ConvertError> {
        loop {
            let sources = self.begin_reading(now, &plan.changed)?;
            let buffered = match sources.is_empty() {
                true => None,
                false => Some(converter.buffer(conversion, &sources)?),
            };
            let outcomes = buffered.as_ref().map_or(&[][..], |h| converter.outcomes(h)).to_vec();
            let has =
                outcomes.iter().map(|o| (o.rows.source.clone(), o.partitions.keys().cloned().collect())).collect();
            let touched = plan.affected_partitions(now, &has);
            let required = plan.required_sources(now, &touched);
            if required.is_empty() {
                return Ok((buffered, outcomes, touched));
            }
            required.into_iter().for_each(|key| plan.include(now, key));
        }
    }

    /// The sources to read next. Checks again that they are complete, since converting other tables may have taken
    /// long.
    fn begin_reading(&self, now: &PlanInput<'_>, keys: &BTreeSet<String>) -> Result<Vec<SourceRef>, RunError> {
        check_not_being_written(self.request, now.table, keys)?;
        let sources = source_refs(now.sources, keys);
        self.counters.expect_sources(sources.len() as u64, sources.iter().map(|s| s.size).sum());
        Ok(sources)
    }

    /// The outcomes of all sources read, by key; each matches the plan.
    fn outcomes(
        &self,
        buffered: &[SourceOutcome],
        converted: &Converted,
        now: &PlanInput<'_>,
    ) -> Result<BTreeMap<String, SourceOutcome>, ConvertError> {
        let all = buffered.iter().chain(&converted.sources);
        let mut outcomes: BTreeMap<String, SourceOutcome> = all.map(|o| (o.rows.source.clone(), o.clone())).collect();
        for (key, outcome) in &mut outcomes {
            let planned = now.sources.get(key);
            let same = planned.is_some_and(|p| p.matches(outcome.size, outcome.etag.as_deref()));
            if !same {
                return Err(ConvertError::SourceChanged { key: key.clone() });
            }
            outcome.etag = outcome.etag.take().or_else(|| planned.and_then(|p| p.etag.clone()));
        }
        Ok(outcomes)
    }

    /// Checks that an unchanged source gave the partitions recorded in the manifest.
    fn check_contributors(
        &self,
        now: &PlanInput<'_>,
        contributors: &BTreeSet<String>,
        outcomes: &BTreeMap<String, SourceOutcome>,
    ) -> Result<(), ConvertError> {
        for key in contributors {
            let entry = now.manifest.and_then(|m| m.sources.get(key));
            let Some((entry, outcome)) = entry.zip(outcomes.get(key)) else { continue };
            if entry.sha256 != outcome.sha256 {
                return Err(ConvertError::SourceChanged { key: key.clone() });
            }
            if entry.partitions != outcome.partitions {
                let message = format!("table `{}`: source `{key}` gave other partitions than before", now.table);
                return Err(RunError::new(RunErrorCode::AccountingBroken, message).path(key.as_str()).into());
            }
        }
        Ok(())
    }

    /// The manifest entries of new files.
    fn entries(&self, outcomes: &BTreeMap<String, SourceOutcome>, converted: &Converted) -> BuiltTable {
        let table = self.mapping.table.as_str();
        let read_at = rfc3339(self.lake.listed_at);
        let mut built = BuiltTable::default();
        for (key, outcome) in outcomes {
            let entry = SourceEntry {
                etag: outcome.etag.clone(),
                size: outcome.size,
                sha256: outcome.sha256.clone(),
                read_at: read_at.clone(),
                rows_read: outcome.rows.rows_read,
                rows_written: outcome.rows.rows_written,
                rows_rejected: outcome.rows.rows_rejected,
                rows_filtered: outcome.rows.rows_filtered,
                partitions: outcome.partitions.clone(),
            };
            built.sources.insert(key.clone(), entry);
            if let Some(file) = &outcome.rejects {
                let entry = file_entry(relative_rejects_key(table, key), file);
                built.rejects.insert(key.clone(), FileEntry { sources: vec![key.clone()], ..entry });
            }
        }
        for (partition, groups) in converted.partitions.iter().filter(|(_, groups)| !groups.is_empty()) {
            let entry = |(i, file)| file_entry(relative_part_key(table, partition, i), file);
            built.partitions.insert(partition.clone(), Converted::files(groups).enumerate().map(entry).collect());
        }
        built
    }

    /// The scratch path of each new key.
    fn made(&self, outcomes: &BTreeMap<String, SourceOutcome>, converted: &Converted) -> BTreeMap<String, PathBuf> {
        let table = self.mapping.table.as_str();
        let rejects = outcomes.iter().filter_map(|(key, outcome)| {
            Some((relative_rejects_key(table, key), outcome.rejects.as_ref()?.path.clone()))
        });
        let files = converted.partitions.iter().flat_map(|(partition, groups)| {
            let part =
                move |(i, file): (usize, &SpooledFile)| (relative_part_key(table, partition, i), file.path.clone());
            Converted::files(groups).enumerate().map(part)
        });
        rejects.chain(files).collect()
    }

    /// Requests the ETags of objects that may be replaced, where the listing has none.
    fn fill_tags<'k>(&self, output: &mut Listing, keys: impl Iterator<Item = &'k String>) -> Result<(), RunError> {
        let prefix = pipeline_prefix(self.request.slug());
        let unknown: Vec<&String> = keys.filter(|key| output.get(*key).is_some_and(|l| l.etag.is_none())).collect();
        let head = |key: &&String| self.request.store.head(Bucket::Warehouse, &format!("{prefix}{key}"));
        let heads = parallel_map(&unknown, PARALLEL_HEADS_MAX, head).map_err(store_error)?;
        for (key, head) in unknown.into_iter().zip(heads) {
            match head {
                Some(head) => {
                    output.insert(key.clone(), ListedObject { size: head.size, etag: head.etag.map(|e| e.0) });
                }
                None => {
                    output.remove(key);
                }
            }
        }
        Ok(())
    }
}

fn partitions_of(outcomes: &BTreeMap<String, SourceOutcome>) -> BTreeMap<String, BTreeSet<String>> {
    outcomes.iter().map(|(key, o)| (key.clone(), o.partitions.keys().cloned().collect())).collect()
}

fn file_entry(key: String, file: &SpooledFile) -> FileEntry {
    FileEntry {
        key,
        rows: file.rows,
        size: file.size,
        etag: None,
        sha256: file.sha256.clone(),
        sources: file.sources.clone(),
    }
}

fn table_result(
    next: &Manifest,
    publication: &Publication,
    outcomes: &BTreeMap<String, SourceOutcome>,
    sources: usize,
) -> TableResult {
    let files = || next.partitions.values().flat_map(|p| &p.files);
    let written: BTreeSet<&str> = publication.puts.iter().filter_map(|k| partition_of(&next.table, k)).collect();
    let mut warnings: BTreeMap<String, u64> = BTreeMap::new();
    for (check, rows) in outcomes.values().flat_map(|o| &o.warnings) {
        *warnings.entry(check.clone()).or_default() += rows;
    }
    TableResult {
        rows_written: files().map(|f| f.rows).sum(),
        rows_rejected: next.sources.values().map(|s| s.rows_rejected).sum(),
        rows_filtered: next.sources.values().map(|s| s.rows_filtered).sum(),
        partitions_written: written.len() as u64,
        partitions_unchanged: (next.partitions.len() - written.len()) as u64,
        partitions_deleted: 0,
        partitions_retained: next.partitions.values().filter(|p| p.retained).count() as u64,
        partitions_lost: 0,
        files: files().count() as u64,
        bytes: files().map(|f| f.size).sum(),
        sources_read: outcomes.len() as u64,
        sources_skipped: sources.saturating_sub(outcomes.len()) as u64,
        sources: outcomes.values().map(|o| o.rows.clone()).collect(),
        warnings,
        rows_before: None,
        changes: TableChanges::default(),
        planned: PartitionChanges { write: written.into_iter().map(str::to_owned).collect(), delete: Vec::new() },
    }
}

fn clean_run_required(table: &str, error: &CleanRunRequired) -> RunError {
    const SHOWN_MAX: usize = 5;
    let shown: Vec<&str> = error.partitions.iter().take(SHOWN_MAX).map(String::as_str).collect();
    let more = error.partitions.len().saturating_sub(SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    RunError::new(
        RunErrorCode::CleanRunRequired,
        format!("table `{table}` changed its columns or partitioning, and has partitions whose sources were removed"),
    )
    .path(table)
    .detail(format!(
        "`{}`{more} can't be rebuilt: do a clean run, which drops them, or put their CSVs back",
        shown.join("`, `")
    ))
}
