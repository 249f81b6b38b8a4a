//! Converts a table's changed sources, and merges them with the stored rows of the affected groups.
//!
//! Invariant: the groups are those that all of the table's CSVs would give, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive;
use super::converter::Converter;
use super::stored_files::{self, Fetched};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::pipeline::Mapping;
use crate::domain::table_log::cuts::text_share;
use crate::domain::table_log::entries::{GroupEntry, Member, Members, RangeKey, SegmentEntry, SourceEntry};
use crate::domain::table_log::merge::{Merge, merge, row_groups};
use crate::domain::table_log::regroup::{Changes, Groups, PlannedGroup, PlannedSegment, Regrouped, SegmentRef};
use crate::engine::convert::{
    BuildInputs, BuildLayout, BuiltGroup, BuiltSegment, Conversion, ConvertError, Converted, RowGroups, SourceList,
    SourceOutcome, SourceRef, SpooledFile, StoredSegment, StoredSource, TextList,
};
use crate::engine::run_error::{scratch_error, table_error};
use crate::pipelines::tables::{Maps, TableStore};
use crate::ports::store::ETag;

/// The changes of a table: the conversion of its changed sources, and the groups by partition.
pub(super) struct Update {
    /// The outcomes of changed sources.
    pub changed: Vec<SourceOutcome>,
    pub partitions: Vec<UpdatedPartition>,
}

/// A partition with its replaced groups and the new ones.
pub(super) struct UpdatedPartition {
    pub partition: String,
    pub replaced: BTreeMap<String, GroupEntry>,
    pub made: Vec<UpdatedGroup>,
}

/// A new group.
pub(super) struct UpdatedGroup {
    pub first: String,
    pub files: Vec<SpooledFile>,
    /// With the sources of new segments.
    pub segments: Vec<(SegmentEntry, Option<Members>)>,
}

/// Unchanged sources whose rows come from their CSVs.
#[derive(Default)]
struct RereadSources {
    read: SourceList,
    /// The partitions that their rows are for.
    only: BTreeMap<String, Arc<BTreeSet<String>>>,
    entries: BTreeMap<String, SourceEntry>,
}

/// Why an update failed.
pub(super) enum UpdateError {
    /// Stored files are missing or differ from the manifest. These sources have rows in them and must be read.
    Lost(Vec<String>),
    Failed(ConvertError),
}

impl From<ConvertError> for UpdateError {
    fn from(error: ConvertError) -> Self {
        Self::Failed(error)
    }
}

impl From<RunError> for UpdateError {
    fn from(error: RunError) -> Self {
        Self::Failed(error.into())
    }
}

/// A partition being updated.
struct Planned {
    regrouped: Regrouped,
    merge: Merge,
}

/// Updates one table.
pub(super) struct Updater<'a> {
    pub table: TableStore<'a>,
    pub mapping: &'a Mapping,
    pub conversion: &'a Conversion<'a>,
    pub maps: Maps,
    /// A folder for stored files.
    pub scratch: &'a Path,
}

impl Updater<'_> {
    /// Reads `sources` and merges their rows. `removed`: the sources that left the table.
    pub fn update<C: Converter>(
        &mut self,
        converter: &C,
        sources: &Arc<SourceList>,
        removed: &[(String, SourceEntry)],
    ) -> Result<Update, UpdateError> {
        let buffered = match sources.is_empty() {
            true => None,
            false => Some(converter.buffer(self.conversion, sources)?),
        };
        let changed = buffered.as_ref().map_or(&[][..], |buffered| converter.outcomes(buffered)).to_vec();
        let changes = self.changes(&changed, removed)?;
        let mut planned = BTreeMap::new();
        for (partition, changes) in changes {
            let regrouped = self.regroup(&partition, &changes)?;
            let merge = merge(&regrouped, !self.mapping.sort_by.is_empty());
            planned.insert(partition, Planned { regrouped, merge });
        }
        let files = self.fetch(&planned)?;
        let stored = self.stored(&planned, &files)?;
        let RereadSources { read, only, entries } = self.reread(&planned)?;
        let inputs = BuildInputs { read: Arc::new(read), only, buffered, stored, layout: BuildLayout::Segments };
        let converted = converter.build(self.conversion, inputs, &mut |outcome| check_reread(&entries, &outcome))?;
        let partitions = self.assemble(converter, planned, &files, converted)?;
        Ok(Update { changed, partitions })
    }

    /// The changed sources of each partition.
    fn changes(
        &mut self,
        outcomes: &[SourceOutcome],
        removed: &[(String, SourceEntry)],
    ) -> Result<BTreeMap<String, Changes>, RunError> {
        let mut changes: BTreeMap<String, Changes> = BTreeMap::new();
        let mut set = |partition: &str, key: &str, member: Option<Member>| {
            changes.entry(partition.to_owned()).or_default().insert(key.to_owned(), member);
        };
        for (key, entry) in removed {
            entry.partitions.keys().for_each(|partition| set(partition, key, None));
        }
        let mut reader = self.table.reader();
        for outcome in outcomes {
            let key = &outcome.rows.source;
            if let Some(before) = self.maps.sources.get(key, &mut reader).map_err(table_error)? {
                before.partitions.keys().for_each(|partition| set(partition, key, None));
            }
            for (partition, rows) in &outcome.partitions {
                let share = text_share(outcome.text_bytes, *rows, outcome.rows.rows_read);
                set(partition, key, Some(Member { source: key.clone(), rows: *rows, share }));
            }
        }
        Ok(changes)
    }

    fn regroup(&mut self, partition: &str, changes: &Changes) -> Result<Regrouped, RunError> {
        let mut groups = Groups {
            groups: &mut self.maps.groups,
            members: &mut self.maps.members,
            read_groups: self.table.reader(),
            read_members: self.table.reader(),
        };
        groups.regroup(partition, changes, self.mapping.parquet.cuts).map_err(table_error)
    }

    /// Fetches the stored files that the plan uses; returns their paths by key.
    fn fetch(&mut self, planned: &BTreeMap<String, Planned>) -> Result<BTreeMap<String, PathBuf>, UpdateError> {
        let mut wanted = Vec::new();
        for (partition, Planned { regrouped, merge }) in planned {
            for group in &merge.groups {
                let files = regrouped.replaced.get(group).map(|entry| entry.files.as_slice()).unwrap_or_default();
                wanted.extend(files.iter().map(|file| (partition.clone(), group.clone(), file.clone())));
            }
        }
        std::fs::create_dir_all(self.scratch).map_err(|error| scratch_error(self.scratch, &error))?;
        let files: Vec<_> = wanted.iter().map(|(_, _, file)| file.clone()).collect();
        let fetched = stored_files::fetch(&self.table, &files, self.scratch)?;
        let (mut paths, mut lost) = (BTreeMap::new(), BTreeSet::new());
        for ((partition, group, file), fetched) in wanted.into_iter().zip(fetched) {
            match fetched {
                Fetched::File(path) => drop(paths.insert(file.key, path)),
                Fetched::Lost(reason) => {
                    let (table, key) = (self.table.table, &file.key);
                    tracing::warn!(table, key, reason, "stored file not usable; its rows are read from CSVs again");
                    let entry = planned.get(&partition).and_then(|planned| planned.regrouped.replaced.get(&group));
                    for segment in entry.iter().flat_map(|entry| &entry.segments) {
                        let members = self.members(&partition, &segment.first)?;
                        lost.extend(members.into_iter().map(|member| member.source));
                    }
                }
            }
        }
        if lost.is_empty() { Ok(paths) } else { Err(UpdateError::Lost(lost.into_iter().collect())) }
    }

    fn members(&mut self, partition: &str, first: &str) -> Result<Members, RunError> {
        let members = self.maps.members.get(&RangeKey::new(partition, first), &mut self.table.reader());
        Ok(members.map_err(table_error)?.cloned().unwrap_or_default())
    }

    /// The stored segments to decode.
    fn stored(
        &mut self,
        planned: &BTreeMap<String, Planned>,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<Vec<StoredSegment>, RunError> {
        let mut stored = Vec::new();
        for (partition, Planned { regrouped, merge }) in planned {
            for (at, used) in &merge.decoded {
                let Some(group) = regrouped.replaced.get(&at.group) else { continue };
                let Some(segment) = group.segments.get(at.index) else { continue };
                let used: BTreeSet<&str> = used.iter().map(|member| member.member.source.as_str()).collect();
                let source = |member: Member| StoredSource {
                    keep: used.contains(member.source.as_str()),
                    key: member.source,
                    rows: member.rows,
                    share: member.share,
                };
                let sources = self.members(partition, &segment.first)?.into_iter().map(source).collect();
                let parts = parts_of(group, at.index, files)?;
                stored.push(StoredSegment { partition: partition.clone(), parts, sources });
            }
        }
        Ok(stored)
    }

    fn reread(&mut self, planned: &BTreeMap<String, Planned>) -> Result<RereadSources, RunError> {
        let mut partitions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (partition, planned) in planned {
            for source in &planned.merge.reread {
                partitions.entry(source).or_default().insert(partition.clone());
            }
        }
        let mut reread = RereadSources::default();
        for (key, partitions) in partitions {
            let key = key.to_owned();
            let entry = self.maps.sources.get(&key, &mut self.table.reader()).map_err(table_error)?.cloned();
            let entry = entry.ok_or_else(|| broken(&self.table, &key, "it has rows, but no entry"))?;
            let etag = entry.etag.clone().map(ETag);
            reread.read.push(&SourceRef { key: key.clone(), etag, size: entry.size });
            reread.only.insert(key.clone(), Arc::new(partitions));
            reread.entries.insert(key, entry);
        }
        archive::check_reread(self.table.table, &reread.entries)?;
        Ok(reread)
    }

    /// Makes the files of all groups.
    fn assemble<C: Converter>(
        &self,
        converter: &C,
        planned: BTreeMap<String, Planned>,
        files: &BTreeMap<String, PathBuf>,
        mut converted: Converted,
    ) -> Result<Vec<UpdatedPartition>, ConvertError> {
        let (mut joined, mut partitions) = (Vec::new(), Vec::new());
        for (partition, Planned { regrouped, .. }) in planned {
            let built = converted.partitions.remove(&partition).unwrap_or_default();
            let mut built = Built::new(built, &converted.keys);
            let mut made = Vec::with_capacity(regrouped.made.len());
            for group in &regrouped.made {
                let (group, parts) = self.group(group, &regrouped.replaced, files, &mut built)?;
                if let Some(parts) = parts {
                    joined.push((partitions.len(), made.len(), parts));
                }
                made.push(group);
            }
            if let Some(extra) = built.0.keys().next() {
                return Err(broken(&self.table, extra, "a segment was built that was not planned").into());
            }
            partitions.push(UpdatedPartition { partition, replaced: regrouped.replaced, made });
        }
        let parts: Vec<Vec<RowGroups>> = joined.iter().map(|(_, _, parts)| parts.clone()).collect();
        let assembled = converter.assemble(self.conversion, &parts)?;
        for ((partition, group, _), files) in joined.into_iter().zip(assembled) {
            partitions[partition].made[group].files = files;
        }
        Ok(partitions)
    }

    /// A group, and the row groups to make its files of, unless they are those of its only segment.
    fn group(
        &self,
        group: &PlannedGroup,
        replaced: &BTreeMap<String, GroupEntry>,
        files: &BTreeMap<String, PathBuf>,
        built: &mut Built,
    ) -> Result<(UpdatedGroup, Option<Vec<RowGroups>>), RunError> {
        let (mut segments, mut parts, mut own) = (Vec::new(), Vec::new(), None);
        for segment in &group.segments {
            match segment {
                PlannedSegment::Kept(SegmentRef { group, index }) => {
                    let missing = || broken(&self.table, group, "a group was planned that does not exist");
                    let entry = replaced.get(group).ok_or_else(missing)?;
                    parts.extend(parts_of(entry, *index, files)?);
                    segments.push((entry.segments.get(*index).ok_or_else(missing)?.clone(), None));
                }
                PlannedSegment::New { members, cut } => {
                    let members: Members = members.iter().map(|planned| planned.member.clone()).collect();
                    let first = members.first().map(|member| member.source.clone()).unwrap_or_default();
                    let last = members.last().map(|member| member.source.clone()).unwrap_or_default();
                    let (found, files) = built
                        .0
                        .remove(&first)
                        .ok_or_else(|| broken(&self.table, &first, "a segment that was planned was not built"))?;
                    if found != members {
                        return Err(broken(&self.table, &first, "a segment's rows differ from the plan"));
                    }
                    let whole = |file: &SpooledFile| RowGroups { path: file.path.clone(), range: 0..file.row_groups };
                    parts.extend(files.iter().map(whole));
                    let row_groups = files.iter().map(|file| file.row_groups as u32).sum();
                    let rows = members.iter().map(|member| member.rows).sum();
                    segments.push((SegmentEntry { first, last, rows, row_groups, cut: *cut }, Some(members)));
                    own = Some(files);
                }
            }
        }
        let first = group.first.clone();
        Ok(match own.filter(|_| segments.len() == 1) {
            Some(files) => (UpdatedGroup { first, files, segments }, None),
            None => (UpdatedGroup { first, files: Vec::new(), segments }, Some(parts)),
        })
    }
}

impl UpdatedGroup {
    /// A group that was built whole. `keys`: of the conversion.
    pub fn of(group: BuiltGroup, keys: &TextList) -> Self {
        let segments: Vec<(SegmentEntry, Option<Members>)> = group
            .segments
            .iter()
            .map(|segment| {
                let members = members_of(segment, keys);
                let (rows, row_groups, cut) = (segment.rows, segment.row_groups as u32, segment.cut);
                let source = |member: Option<&Member>| member.map(|member| member.source.clone()).unwrap_or_default();
                let (first, last) = (source(members.first()), source(members.last()));
                (SegmentEntry { first, last, rows, row_groups, cut }, Some(members))
            })
            .collect();
        let first = segments.first().map(|(segment, _)| segment.first.clone()).unwrap_or_default();
        Self { first, files: group.files, segments }
    }
}

fn members_of(segment: &BuiltSegment, keys: &TextList) -> Members {
    let members = segment.members.iter().map(|member| Member {
        source: keys.get(member.source as usize).to_owned(),
        rows: member.rows,
        share: member.share,
    });
    members.collect()
}

/// The segments that were built, by first source: their sources and files.
struct Built(BTreeMap<String, (Members, Vec<SpooledFile>)>);

impl Built {
    fn new(groups: Vec<BuiltGroup>, keys: &TextList) -> Self {
        let of = |group: BuiltGroup| {
            let members: Members = group.segments.iter().flat_map(|segment| members_of(segment, keys)).collect();
            Some((members.first()?.source.clone(), (members, group.files)))
        };
        Self(groups.into_iter().filter_map(of).collect())
    }
}

/// Where a segment's row groups are.
fn parts_of(group: &GroupEntry, segment: usize, files: &BTreeMap<String, PathBuf>) -> Result<Vec<RowGroups>, RunError> {
    let part = |(at, range): (usize, std::ops::Range<usize>)| {
        let key = &group.files[at].key;
        let missing = || RunError::new(RunErrorCode::Internal, format!("`{key}` was not fetched"));
        Ok(RowGroups { path: files.get(key).ok_or_else(missing)?.clone(), range })
    };
    row_groups(group, segment).into_iter().map(part).collect()
}

/// Checks that a source that was read again is as it was.
fn check_reread(entries: &BTreeMap<String, SourceEntry>, outcome: &SourceOutcome) -> Result<(), ConvertError> {
    let key = &outcome.rows.source;
    match entries.get(key) {
        Some(entry) if entry.sha256 != outcome.sha256 => Err(ConvertError::SourceChanged { key: key.clone() }),
        Some(entry) if entry.partitions != outcome.partitions => {
            let message = format!("source `{key}` has different partitions than when first read");
            Err(RunError::new(RunErrorCode::AccountingBroken, message).path(key.as_str()).into())
        }
        Some(_) | None => Ok(()),
    }
}

fn broken(table: &TableStore<'_>, path: &str, found: &str) -> RunError {
    RunError::new(RunErrorCode::AccountingBroken, format!("table `{}`: `{path}`: {found}", table.table))
        .path(path)
        .detail("nothing was published. This is a bug in Lakemill; a clean run rebuilds the table")
}
