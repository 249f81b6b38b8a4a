//! Plans which groups of a partition change with its sources.
//!
//! Invariant: the groups after a change depend on the partition's sources alone, not on the earlier groups; a segment
//! whose sources didn't change is kept.
//!
//! Segments end where `cuts` says. Up to the last file cut of the partition, each run of segments that ends with a file
//! cut is a group; after it, in the tail, each segment is one.

use std::collections::BTreeMap;

use super::cuts::{Cut, CutTargets, cut_after};
use super::entries::{GroupEntry, Member, Members, RangeKey};
use super::shards::{ReadShards, ShardedMap};

/// The changed sources of one partition: with their rows, or `None` if they no longer have rows in it.
pub type Changes = BTreeMap<String, Option<Member>>;

/// A segment of the current manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentRef {
    /// The first source of its group.
    pub group: String,
    /// Its index in the group.
    pub index: usize,
}

/// A source of a new segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMember {
    pub member: Member,
    /// Where its rows are: a segment and the row at which they begin. `None`: the source was read.
    pub stored: Option<(SegmentRef, u64)>,
}

/// A segment after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedSegment {
    Kept(SegmentRef),
    New { members: Vec<PlannedMember>, cut: Cut },
}

/// A group after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGroup {
    /// Its first source.
    pub first: String,
    pub segments: Vec<PlannedSegment>,
}

/// The groups of a partition that a change replaces, by first source, and the new ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Regrouped {
    pub replaced: BTreeMap<String, GroupEntry>,
    pub made: Vec<PlannedGroup>,
}

/// The manifest's groups and the sources of their segments.
pub struct Groups<'a, RG, RM> {
    pub groups: &'a mut ShardedMap<RangeKey, GroupEntry>,
    pub members: &'a mut ShardedMap<RangeKey, Members>,
    pub read_groups: RG,
    pub read_members: RM,
}

/// Consecutive groups of a partition.
type Interval = Vec<(String, GroupEntry)>;

impl<RG, RM, E> Groups<'_, RG, RM>
where
    RG: ReadShards<RangeKey, GroupEntry, Error = E>,
    RM: ReadShards<RangeKey, Members, Error = E>,
{
    /// Plans the groups of `partition` after `changes`. Reads the groups between the first and the last change, those of
    /// the tail if it may change, and the sources of changed segments.
    ///
    /// # Errors
    /// If a shard can't be read.
    pub fn regroup(&mut self, partition: &str, changes: &Changes, targets: CutTargets) -> Result<Regrouped, E> {
        let (mut interval, closed_after) = self.interval(partition, changes)?;
        loop {
            let last = interval.last().map(|(first, _)| first.clone());
            let next = match &last {
                Some(last) => self.next(partition, last)?,
                None => None,
            };
            let around = IntervalContext { at_end: next.is_none(), closed_after };
            let mut members = |first: &str| {
                let key = RangeKey::new(partition, first);
                Ok(self.members.get(&key, &mut self.read_members)?.cloned().unwrap_or_default())
            };
            let planned = plan(&interval, around, changes, targets, &mut members)?;
            match (planned, next) {
                (Some(made), _) => return Ok(without_unchanged(interval, made)),
                (None, Some(next)) => interval.push(next),
                // Not reached: at the end nothing more is needed.
                (None, None) => return Ok(Regrouped::default()),
            }
        }
    }

    /// The groups that `changes` may touch, and whether a closed group follows.
    fn interval(&mut self, partition: &str, changes: &Changes) -> Result<(Interval, bool), E> {
        let (Some((first, _)), Some((last, _))) = (changes.first_key_value(), changes.last_key_value()) else {
            return Ok((Vec::new(), false));
        };
        let (Some(mut start), Some(end)) = (self.group_of(partition, first)?, self.group_of(partition, last)?) else {
            return Ok((Vec::new(), false));
        };
        let (last_closed, tail) = self.tail(partition)?;
        let closed_after = last_closed.as_ref().is_some_and(|closed| end.0 < *closed);
        if last_closed.is_none_or(|closed| end.0 > closed)
            && let Some(tail) = tail.filter(|(tail, _)| *tail < start.0)
        {
            start = tail;
        }
        let mut interval = vec![start];
        while let Some((last, _)) = interval.last().filter(|(last, _)| *last < end.0) {
            let last = last.clone();
            match self.next(partition, &last)? {
                Some(next) => interval.push(next),
                None => break,
            }
        }
        Ok((interval, closed_after))
    }

    /// The group whose segments the source `key` belongs to; `None` if the partition has no groups.
    fn group_of(&mut self, partition: &str, key: &str) -> Result<Option<(String, GroupEntry)>, E> {
        let at = RangeKey::new(partition, key);
        let floor = self.groups.floor(&at, &mut self.read_groups)?.and_then(|found| in_partition(partition, found));
        let Some((first, group)) = floor else { return self.next(partition, "") };
        let ends_before = group.segments.last().is_some_and(|last| last.cut != Cut::None && last.last.as_str() < key);
        if ends_before && let Some(next) = self.next(partition, &first)? {
            return Ok(Some(next));
        }
        Ok(Some((first, group)))
    }

    fn next(&mut self, partition: &str, first: &str) -> Result<Option<(String, GroupEntry)>, E> {
        let at = RangeKey::new(partition, first);
        Ok(self.groups.after(&at, &mut self.read_groups)?.and_then(|found| in_partition(partition, found)))
    }

    /// The last closed group of the partition, and the first group after it.
    #[expect(clippy::type_complexity, reason = "two things that are found together, used once")]
    fn tail(&mut self, partition: &str) -> Result<(Option<String>, Option<(String, GroupEntry)>), E> {
        // No partition's name has a NUL, so that this is after every group of this partition and before any other.
        let mut at = RangeKey::new(&format!("{partition}\0"), "");
        let mut tail = None;
        loop {
            let before = self.groups.before(&at, &mut self.read_groups)?;
            let Some((first, group)) = before.and_then(|found| in_partition(partition, found)) else {
                return Ok((None, tail));
            };
            if group.is_closed() {
                return Ok((Some(first), tail));
            }
            at = RangeKey::new(partition, &first);
            tail = Some((first, group));
        }
    }
}

fn in_partition(partition: &str, (key, group): (&RangeKey, &GroupEntry)) -> Option<(String, GroupEntry)> {
    (key.partition == partition).then(|| (key.first.clone(), group.clone()))
}

/// The neighbours of an interval of groups.
#[derive(Debug, Clone, Copy)]
struct IntervalContext {
    /// It ends with the last group of the partition.
    at_end: bool,
    /// A closed group follows it.
    closed_after: bool,
}

/// A segment after a change, with its first source and its cut.
struct PlacedSegment {
    first: String,
    cut: Cut,
    segment: PlannedSegment,
}

/// Plans the groups of an interval; `None` if the next group is needed as well.
fn plan<E>(
    interval: &[(String, GroupEntry)],
    around: IntervalContext,
    changes: &Changes,
    targets: CutTargets,
    members: &mut dyn FnMut(&str) -> Result<Members, E>,
) -> Result<Option<Vec<PlannedGroup>>, E> {
    let Some(segments) = resegment(interval, around.at_end, changes, targets, members)? else { return Ok(None) };
    let last_file_cut = segments.iter().rposition(|placed| placed.cut == Cut::File);
    let closed = match around.closed_after {
        true if segments.last().is_some_and(|last| last.cut != Cut::File) => return Ok(None),
        true => segments.len(),
        false => last_file_cut.map_or(0, |at| at + 1),
    };
    let mut groups: Vec<PlannedGroup> = Vec::new();
    let mut is_open = false;
    for (at, placed) in segments.into_iter().enumerate() {
        match groups.last_mut().filter(|_| is_open) {
            Some(group) => group.segments.push(placed.segment),
            None => groups.push(PlannedGroup { first: placed.first, segments: vec![placed.segment] }),
        }
        is_open = at < closed && placed.cut != Cut::File;
    }
    Ok(Some(groups))
}

/// The segments of an interval after a change; `None` if the last isn't complete without the next group.
fn resegment<E>(
    interval: &[(String, GroupEntry)],
    at_end: bool,
    changes: &Changes,
    targets: CutTargets,
    members: &mut dyn FnMut(&str) -> Result<Members, E>,
) -> Result<Option<Vec<PlacedSegment>>, E> {
    let mut segments = Segments { targets, placed: Vec::new(), open: Vec::new() };
    let mut left = changes.iter().peekable();
    for (group, entry) in interval {
        for (index, segment) in entry.segments.iter().enumerate() {
            let mut own = Vec::new();
            let ends = |key: &str| segment.cut != Cut::None && segment.last.as_str() < key;
            while let Some((key, change)) = left.next_if(|(key, _)| !ends(key)) {
                own.push((key, change));
            }
            if own.is_empty() && segments.open.is_empty() {
                let kept = PlannedSegment::Kept(SegmentRef { group: group.clone(), index });
                segments.placed.push(PlacedSegment { first: segment.first.clone(), cut: segment.cut, segment: kept });
                continue;
            }
            let mut row = 0;
            let mut own = own.into_iter().peekable();
            for member in members(&segment.first)? {
                while let Some((_, change)) = own.next_if(|(key, _)| **key < member.source) {
                    segments.push_read(change.as_ref());
                }
                let (rows, stored) = (member.rows, SegmentRef { group: group.clone(), index });
                match own.next_if(|(key, _)| **key == member.source) {
                    Some((_, change)) => segments.push_read(change.as_ref()),
                    None => segments.push(PlannedMember { member, stored: Some((stored, row)) }),
                }
                row += rows;
            }
            own.for_each(|(_, change)| segments.push_read(change.as_ref()));
        }
    }
    left.for_each(|(_, change)| segments.push_read(change.as_ref()));
    if !segments.open.is_empty() {
        if !at_end {
            return Ok(None);
        }
        segments.end(Cut::None);
    }
    Ok(Some(segments.placed))
}

/// Segments being built.
struct Segments {
    targets: CutTargets,
    placed: Vec<PlacedSegment>,
    open: Vec<PlannedMember>,
}

impl Segments {
    fn push_read(&mut self, change: Option<&Member>) {
        if let Some(member) = change {
            self.push(PlannedMember { member: member.clone(), stored: None });
        }
    }

    fn push(&mut self, member: PlannedMember) {
        let cut = cut_after(&member.member.source, member.member.share, self.targets);
        self.open.push(member);
        if cut != Cut::None {
            self.end(cut);
        }
    }

    fn end(&mut self, cut: Cut) {
        let members = std::mem::take(&mut self.open);
        let first = members.first().map(|member| member.member.source.clone()).unwrap_or_default();
        self.placed.push(PlacedSegment { first, cut, segment: PlannedSegment::New { members, cut } });
    }
}

/// Omits unchanged groups.
fn without_unchanged(interval: Interval, made: Vec<PlannedGroup>) -> Regrouped {
    let mut replaced: BTreeMap<String, GroupEntry> = interval.into_iter().collect();
    let is_kept = |group: &PlannedGroup, replaced: &BTreeMap<String, GroupEntry>| {
        let same = |(at, segment): (usize, &PlannedSegment)| matches!(segment, PlannedSegment::Kept(kept) if kept.group == group.first && kept.index == at);
        let before = replaced.get(&group.first);
        before.is_some_and(|before| before.segments.len() == group.segments.len())
            && group.segments.iter().enumerate().all(same)
    };
    let mut changed = Vec::new();
    for group in made {
        if is_kept(&group, &replaced) {
            replaced.remove(&group.first);
        } else {
            changed.push(group);
        }
    }
    Regrouped { replaced, made: changed }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::shards::{ShardError, ShardRef, decode};
    use super::*;

    const TARGETS: CutTargets = CutTargets { file_text_bytes: 600, tail_text_bytes: 100 };

    /// Sources with the version of their rows and their share, by partition.
    type Sources = BTreeMap<String, BTreeMap<String, (u64, u64)>>;
    type Objects = HashMap<String, Vec<u8>>;

    /// The manifest of a table, whose "files" record the version of each source's rows.
    #[derive(Default, Clone)]
    struct Table {
        groups: Vec<ShardRef<RangeKey>>,
        members: Vec<ShardRef<RangeKey>>,
        /// The versions of the sources of each segment, by partition and first source.
        rows: BTreeMap<RangeKey, Vec<(String, u64)>>,
        objects: Objects,
    }

    /// Groups as lists of segments as lists of sources.
    type Layout = BTreeMap<String, Vec<Vec<Vec<(String, u64)>>>>;

    /// Lays out all sources of a table from scratch.
    fn layout(sources: &Sources) -> Layout {
        let mut all = Layout::new();
        for (partition, sources) in sources.iter().filter(|(_, sources)| !sources.is_empty()) {
            let mut segments: Vec<(Vec<(String, u64)>, Cut)> = vec![(Vec::new(), Cut::None)];
            for (key, (version, share)) in sources {
                let cut = cut_after(key, *share, TARGETS);
                let (segment, ends) = segments.last_mut().unwrap();
                segment.push((key.clone(), *version));
                *ends = cut;
                if cut != Cut::None {
                    segments.push((Vec::new(), Cut::None));
                }
            }
            segments.retain(|(segment, _)| !segment.is_empty());
            let closed = segments.iter().rposition(|(_, cut)| *cut == Cut::File).map_or(0, |at| at + 1);
            let mut groups = Vec::new();
            for some in segments[..closed].split_inclusive(|(_, cut)| *cut == Cut::File) {
                groups.push(some.iter().map(|(segment, _)| segment.clone()).collect());
            }
            groups.extend(segments[closed..].iter().map(|(segment, _)| vec![segment.clone()]));
            all.insert(partition.clone(), groups);
        }
        all
    }

    impl Table {
        fn read<K: super::super::shards::ShardKey, V: serde::de::DeserializeOwned>(
            objects: &Objects,
        ) -> impl FnMut(&ShardRef<K>) -> Result<Vec<(K, V)>, ShardError> {
            |shard| decode(shard, &objects[&shard.name])
        }

        /// Applies changes; returns the replaced groups and the new ones.
        fn apply(&mut self, changes: &BTreeMap<String, Changes>, versions: &Sources) -> (usize, usize) {
            let (mut groups, mut members) = (ShardedMap::new(&self.groups), ShardedMap::new(&self.members));
            let mut counts = (0, 0);
            let objects = self.objects.clone();
            for (partition, changes) in changes {
                let mut all = Groups {
                    groups: &mut groups,
                    members: &mut members,
                    read_groups: Self::read(&objects),
                    read_members: Self::read(&objects),
                };
                let regrouped = all.regroup(partition, changes, TARGETS).unwrap();
                counts.0 += regrouped.replaced.len();
                counts.1 += regrouped.made.len();
                self.commit(partition, regrouped, versions, &mut groups, &mut members, &objects);
            }
            self.groups = groups.rewrite(&mut |shard, bytes| store(&mut self.objects, &shard.name, bytes)).unwrap();
            self.members = members.rewrite(&mut |shard, bytes| store(&mut self.objects, &shard.name, bytes)).unwrap();
            counts
        }

        fn commit(
            &mut self,
            partition: &str,
            regrouped: Regrouped,
            versions: &Sources,
            groups: &mut ShardedMap<RangeKey, GroupEntry>,
            members: &mut ShardedMap<RangeKey, Members>,
            objects: &Objects,
        ) {
            let old = self.rows.clone();
            for (first, group) in &regrouped.replaced {
                groups.set(RangeKey::new(partition, first), None, &mut Self::read(objects)).unwrap();
                for segment in &group.segments {
                    let key = RangeKey::new(partition, &segment.first);
                    members.set(key.clone(), None, &mut Self::read(objects)).unwrap();
                    self.rows.remove(&key);
                }
            }
            let segment_at = |at: &SegmentRef| regrouped.replaced[&at.group].segments[at.index].clone();
            for group in &regrouped.made {
                let mut entries = Vec::new();
                for planned in &group.segments {
                    let (rows, list, cut) = match planned {
                        PlannedSegment::Kept(at) => {
                            let segment = segment_at(at);
                            let rows = old[&RangeKey::new(partition, &segment.first)].clone();
                            let list = rows.iter().map(|(key, _)| member(partition, key, versions)).collect();
                            (rows, list, segment.cut)
                        }
                        PlannedSegment::New { members, cut } => {
                            let rows = members.iter().map(|member| {
                                let key = &member.member.source;
                                let Some((at, row)) = &member.stored else {
                                    return (key.clone(), versions[partition][key].0);
                                };
                                let segment = &old[&RangeKey::new(partition, &segment_at(at).first)];
                                let of = |key: &str| versions_rows(partition, key, versions);
                                let mut start = 0;
                                let found = segment.iter().find(|(key, _)| {
                                    let here = start == *row;
                                    start += of(key);
                                    here
                                });
                                assert_eq!(&found.unwrap().0, key, "its rows are where the plan says");
                                found.unwrap().clone()
                            });
                            let list: Members = members.iter().map(|member| member.member.clone()).collect();
                            (rows.collect::<Vec<_>>(), list, *cut)
                        }
                    };
                    entries.push(super::super::entries::SegmentEntry {
                        first: rows[0].0.clone(),
                        last: rows.last().unwrap().0.clone(),
                        rows: list.iter().map(|member: &Member| member.rows).sum(),
                        row_groups: 1,
                        cut,
                    });
                    let key = RangeKey::new(partition, &rows[0].0);
                    members.set(key.clone(), Some(list), &mut Self::read(objects)).unwrap();
                    self.rows.insert(key, rows);
                }
                let entry = GroupEntry { files: vec![], segments: entries, job_id: "j".into(), sequence: 1 };
                groups.set(RangeKey::new(partition, &group.first), Some(entry), &mut Self::read(objects)).unwrap();
            }
        }

        fn layout(&self) -> Layout {
            let mut all = Layout::new();
            ShardedMap::<RangeKey, GroupEntry>::new(&self.groups)
                .visit(&mut Self::read(&self.objects), |key, group| {
                    let segments = group.segments.iter();
                    let rows = |segment: &super::super::entries::SegmentEntry| {
                        self.rows[&RangeKey::new(&key.partition, &segment.first)].clone()
                    };
                    all.entry(key.partition.clone()).or_default().push(segments.map(rows).collect());
                    Ok(())
                })
                .unwrap();
            all
        }
    }

    fn store(objects: &mut Objects, name: &str, bytes: Vec<u8>) -> Result<(), ShardError> {
        objects.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Rows of a source never change here, only their version, so that the positions of stored rows can be checked.
    fn versions_rows(partition: &str, key: &str, _: &Sources) -> u64 {
        (partition.len() + key.len() + usize::from(key.as_bytes()[key.len() - 1])) as u64 % 7 + 1
    }

    fn member(partition: &str, key: &str, versions: &Sources) -> Member {
        let share = versions.get(partition).and_then(|sources| sources.get(key)).map_or(0, |(_, share)| *share);
        Member { source: key.to_owned(), rows: versions_rows(partition, key, versions), share }
    }

    fn name(number: u16) -> String {
        format!("in/{number:03}")
    }

    #[derive(Debug, Clone)]
    struct Step(Vec<(u16, Vec<u8>, Option<u64>)>);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let partitions = prop::collection::vec(0..3_u8, 1..3);
        let change = (0..90_u16, partitions, prop::option::weighted(0.7, 0..120_u64));
        prop::collection::vec(prop::collection::vec(change, 1..25).prop_map(Step), 1..14)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn groups_depend_only_on_the_sources(steps in steps()) {
            let (mut table, mut sources) = (Table::default(), Sources::new());
            for (version, Step(step)) in steps.into_iter().enumerate() {
                let mut changes: BTreeMap<String, Changes> = BTreeMap::new();
                for (number, partitions, share) in step {
                    for partition in partitions {
                        let partition = format!("p={partition}");
                        let of = sources.entry(partition.clone()).or_default();
                        match share {
                            Some(share) => of.insert(name(number), (version as u64, share)),
                            None => of.remove(&name(number)),
                        };
                        let member = share.map(|_| member(&partition, &name(number), &sources));
                        changes.entry(partition).or_default().insert(name(number), member);
                    }
                }
                table.apply(&changes, &sources);
                prop_assert_eq!(table.layout(), layout(&sources));
            }
        }
    }

    fn filled(count: u16, share: u64) -> (Table, Sources) {
        let (mut table, mut sources) = (Table::default(), Sources::new());
        sources.insert("p".into(), (0..count).map(|number| (name(number * 2), (0, share))).collect());
        let changes = sources["p"].keys().map(|key| (key.clone(), Some(member("p", key, &sources)))).collect();
        table.apply(&BTreeMap::from([("p".to_owned(), changes)]), &sources);
        (table, sources)
    }

    #[test]
    fn changed_source_touches_no_group_but_its_own() {
        let (mut table, mut sources) = filled(400, 10);
        let groups = table.layout()["p"].len();
        assert!(groups > 5, "{groups}");
        let mut touched = Vec::new();
        for number in (1..800).step_by(37) {
            sources.get_mut("p").unwrap().insert(name(number), (1, 0));
            let changes = BTreeMap::from([(name(number), Some(member("p", &name(number), &sources)))]);
            touched.push(table.apply(&BTreeMap::from([("p".to_owned(), changes)]), &sources));
            assert_eq!(table.layout(), layout(&sources));
        }
        assert!(touched.iter().all(|(replaced, made)| *replaced <= 1 && *made <= 2), "{touched:?}");
    }

    #[test]
    fn removal_of_a_missing_source_changes_nothing() {
        let (mut table, sources) = filled(40, 10);
        let changes = BTreeMap::from([(name(7), None)]);
        let (replaced, made) = table.apply(&BTreeMap::from([("p".to_owned(), changes)]), &sources);
        assert!(replaced <= 1 && made == replaced);
        assert_eq!(table.layout(), layout(&sources));
    }
}
