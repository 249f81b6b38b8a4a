//! Decides where the rows of new groups come from: files of the replaced groups, or CSVs.
//!
//! Invariant: rows come from stored files only where that gives the bytes that the CSVs would give. In a segment
//! without sorting, the rows of a source are contiguous. In a sorted one they aren't: its stored rows are used only if
//! all of them stay and all new sources come after theirs, since rows that are equal in the sort columns are in the
//! order of their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::entries::{GroupEntry, Member};
use super::regroup::{PlannedMember, PlannedSegment, Regrouped, SegmentRef};

/// A source of a stored segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMember {
    pub member: Member,
    /// The first of its rows in the segment.
    pub row: u64,
}

/// The rows of one partition's new groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merge {
    /// Stored segments that are decoded, with the sources whose rows are used, in order.
    pub decoded: BTreeMap<SegmentRef, Vec<StoredMember>>,
    /// Unchanged sources whose rows in this partition are read from their CSV again.
    pub reread: BTreeSet<String>,
    /// Groups, by first source, whose files are used at least in part.
    pub groups: BTreeSet<String>,
}

/// Plans where the rows of the new groups come from.
pub fn merge(regrouped: &Regrouped, is_sorted: bool) -> Merge {
    let mut merge = Merge::default();
    for segment in regrouped.made.iter().flat_map(|group| &group.segments) {
        match segment {
            PlannedSegment::Kept(at) => drop(merge.groups.insert(at.group.clone())),
            PlannedSegment::New { members, .. } => merge.add(members, regrouped, is_sorted),
        }
    }
    merge
}

impl Merge {
    fn add(&mut self, members: &[PlannedMember], regrouped: &Regrouped, is_sorted: bool) {
        let uses_stored = !is_sorted || is_appended(members, regrouped);
        for PlannedMember { member, stored } in members {
            match stored {
                Some((at, row)) if uses_stored => {
                    let rows = self.decoded.entry(at.clone()).or_default();
                    rows.push(StoredMember { member: member.clone(), row: *row });
                    self.groups.insert(at.group.clone());
                }
                Some(_) => drop(self.reread.insert(member.source.clone())),
                None => {}
            }
        }
    }
}

/// Whether the members are all rows of one stored segment, followed by sources that were read.
fn is_appended(members: &[PlannedMember], regrouped: &Regrouped) -> bool {
    let stored = members.iter().take_while(|planned| planned.stored.is_some()).count();
    let Some(PlannedMember { stored: Some((segment, _)), .. }) = members.first() else { return false };
    let is_in = |planned: &PlannedMember| planned.stored.as_ref().is_some_and(|(at, _)| at == segment);
    let rows: u64 = members[..stored].iter().map(|planned| planned.member.rows).sum();
    let before = regrouped.replaced.get(&segment.group).and_then(|group| group.segments.get(segment.index));
    members[..stored].iter().all(is_in)
        && members[stored..].iter().all(|planned| planned.stored.is_none())
        && before.is_some_and(|before| before.rows == rows)
}

/// The row groups of a group's segment: a range for each file (by index) that contains some of them.
pub fn row_groups(group: &GroupEntry, segment: usize) -> Vec<(usize, Range<usize>)> {
    let count = |at: usize| group.segments.get(at).map_or(0, |segment| segment.row_groups as usize);
    let start: usize = (0..segment).map(count).sum();
    let wanted = start..start + count(segment);
    let mut begin = 0;
    let mut found = Vec::new();
    for (at, file) in group.files.iter().enumerate() {
        let end = begin + file.row_groups as usize;
        let range = wanted.start.max(begin)..wanted.end.min(end);
        if range.start < range.end {
            found.push((at, range.start - begin..range.end - begin));
        }
        begin = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::cuts::Cut;
    use super::super::entries::{SegmentEntry, StoredFile};
    use super::super::regroup::PlannedGroup;
    use super::*;

    fn group(segments: &[(&str, u64, u32)], files: &[u32]) -> GroupEntry {
        let segment = |(first, rows, row_groups): &(&str, u64, u32)| SegmentEntry {
            first: (*first).into(),
            last: (*first).into(),
            rows: *rows,
            row_groups: *row_groups,
            cut: Cut::Segment,
        };
        let file = |row_groups: &u32| StoredFile {
            key: String::new(),
            rows: 1,
            size: 1,
            sha256: String::new(),
            row_groups: *row_groups,
            delta: None,
            iceberg: None,
        };
        GroupEntry {
            files: files.iter().map(file).collect(),
            segments: segments.iter().map(segment).collect(),
            job_id: "j".into(),
            sequence: 1,
        }
    }

    fn planned(source: &str, rows: u64, stored: Option<(&str, usize, u64)>) -> PlannedMember {
        let stored = stored.map(|(group, index, row)| (SegmentRef { group: group.into(), index }, row));
        PlannedMember { member: Member { source: source.into(), rows, share: 1 }, stored }
    }

    /// Replaces the group `a`, with segments of 5 and 7 rows, by a new segment and a kept one.
    fn regrouped(members: Vec<PlannedMember>) -> Regrouped {
        let kept = PlannedSegment::Kept(SegmentRef { group: "a".into(), index: 1 });
        let new = PlannedSegment::New { members, cut: Cut::Segment };
        Regrouped {
            replaced: BTreeMap::from([("a".into(), group(&[("a", 5, 1), ("d", 7, 2)], &[3]))]),
            made: vec![PlannedGroup { first: "a".into(), segments: vec![new, kept] }],
        }
    }

    fn decoded(merge: &Merge) -> Vec<(usize, Vec<(&str, u64)>)> {
        fn members(of: &[StoredMember]) -> Vec<(&str, u64)> {
            of.iter().map(|stored| (stored.member.source.as_str(), stored.row)).collect()
        }
        merge.decoded.iter().map(|(at, of)| (at.index, members(of))).collect()
    }

    #[test]
    fn rows_of_unchanged_sources_are_decoded() {
        let members =
            || vec![planned("a", 2, Some(("a", 0, 0))), planned("b", 9, None), planned("c", 2, Some(("a", 0, 3)))];
        let merged = merge(&regrouped(members()), false);
        assert_eq!(decoded(&merged), [(0, vec![("a", 0), ("c", 3)])]);
        assert_eq!((merged.reread.len(), merged.groups.len()), (0, 1));
        let sorted = merge(&regrouped(members()), true);
        assert!(sorted.decoded.is_empty(), "rows of equal keys could be in a different order");
        assert_eq!(sorted.reread, BTreeSet::from(["a".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn sorted_segment_is_decoded_if_sources_are_added_at_its_end() {
        let all = || vec![planned("a", 2, Some(("a", 0, 0))), planned("b", 3, Some(("a", 0, 2)))];
        let with = |more: PlannedMember| regrouped(all().into_iter().chain([more]).collect());
        let merged = merge(&with(planned("c", 1, None)), true);
        assert_eq!(decoded(&merged), [(0, vec![("a", 0), ("b", 2)])]);
        let one_is_gone = regrouped(vec![planned("a", 2, Some(("a", 0, 0))), planned("c", 1, None)]);
        assert!(merge(&one_is_gone, true).decoded.is_empty());
        let of_two = with(planned("d", 7, Some(("a", 1, 0))));
        assert!(merge(&of_two, true).decoded.is_empty());
    }

    #[test]
    fn row_groups_of_a_segment_are_found_across_files() {
        let group = group(&[("a", 5, 1), ("b", 5, 4), ("c", 5, 1)], &[2, 2, 2]);
        assert_eq!(row_groups(&group, 0), [(0, 0..1)]);
        assert_eq!(row_groups(&group, 1), [(0, 1..2), (1, 0..2), (2, 0..1)]);
        assert_eq!(row_groups(&group, 2), [(2, 1..2)]);
    }
}
