//! A table built in steps, from its stored rows and changed sources, has the same bytes as a table built from its CSVs
//! in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use lakemill::domain::table_log::cuts::Cut;
use lakemill::engine::convert::*;
use lakemill::ports::ObjectStore;
use lakemill::ports::observer::Stop;
use lakemill::ports::store::Bucket;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::support::lake::{Lake, MIB, Rng, SQL};

struct NoProgress;

impl ConvertProgress for NoProgress {
    fn bytes_read(&self, _bytes: u64) {}
    fn source_done(&self) {}
    fn rows(&self, _read: u64, _written: u64, _rejected: u64) {}
    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }
}

/// A stored segment.
#[derive(Debug, Clone)]
struct Segment {
    /// Key, rows and fraction of each source.
    members: Vec<(String, u64, u64)>,
    cut: Cut,
    parts: Vec<RowGroups>,
}

/// The comparable result: the sources of each segment, and the digests of the files.
type Layout = BTreeMap<String, Vec<(Vec<Vec<(String, u64, u64)>>, Vec<String>)>>;

/// A table and the lake of its sources.
struct Table {
    lake: Lake,
    folder: tempfile::TempDir,
    sorted: bool,
    segments: BTreeMap<String, Vec<Segment>>,
    layout: Layout,
}

/// The result of building a partition.
#[derive(Default)]
struct Touched {
    stored: Vec<StoredSegment>,
    /// Sources to read for it.
    read: BTreeSet<String>,
    kept: Vec<Segment>,
}

fn row_groups(path: &PathBuf) -> usize {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap().metadata().num_row_groups()
}

/// The position of each segment of a group, given the group's files and each segment's row groups.
fn locate(files: &[SpooledFile], counts: &[usize]) -> Vec<Vec<RowGroups>> {
    let mut all = Vec::new();
    for file in files {
        all.extend((0..row_groups(&file.path)).map(|at| (file.path.clone(), at)));
    }
    assert_eq!(all.len(), counts.iter().sum::<usize>());
    let mut all = all.into_iter();
    let parts = |count: &usize| {
        let mut parts: Vec<RowGroups> = Vec::new();
        for (path, at) in all.by_ref().take(*count) {
            match parts.last_mut() {
                Some(part) if part.path == path => part.range.end += 1,
                _ => parts.push(RowGroups { path, range: at..at + 1 }),
            }
        }
        parts
    };
    counts.iter().map(parts).collect()
}

fn members(converted: &Converted, segment: &BuiltSegment) -> Vec<(String, u64, u64)> {
    let member = |member: Member| (converted.keys.get(member.source as usize).to_owned(), member.rows, member.share);
    segment.members.iter().map(member).collect()
}

impl Table {
    fn new(mapping: &str) -> Self {
        let lake = Lake::new(mapping);
        let sorted = !lake.pipeline.mappings[0].sort_by.is_empty();
        let folder = crate::support::lake::in_memory_folder();
        Self { lake, folder, sorted, segments: BTreeMap::new(), layout: Layout::new() }
    }

    fn with<T>(&self, rng: &mut Rng, convert: impl FnOnce(&Conversion<'_>) -> T) -> T {
        let memory_bytes = if rng.one_in(2) { MIB } else { 64 * MIB };
        let resources =
            Resources { threads: 1 + rng.below(3) as usize, memory_bytes, scratch: self.folder.path().to_owned() };
        convert(&Conversion {
            store: &self.lake.store,
            slug: &self.lake.slug,
            mapping: &self.lake.pipeline.mappings[0],
            expressions: &*SQL,
            resources: &resources,
            progress: &NoProgress,
            made: &|_, _, _, _| {},
            job_id: "job",
        })
    }

    fn source(&self, key: &str) -> Option<SourceRef> {
        let head = self.lake.store.head(Bucket::Lake, &self.lake.key(key)).unwrap()?;
        Some(SourceRef { key: key.to_owned(), etag: head.etag, size: head.size })
    }

    /// The table built from its CSVs in one step.
    fn clean(&self, rng: &mut Rng) -> Layout {
        let prefix = self.lake.key("");
        let keys: Vec<String> = self.lake.memory.contents(Bucket::Lake).into_keys().collect();
        let source = |key: &String| self.source(key.strip_prefix(&prefix).unwrap()).unwrap();
        let read: Vec<SourceRef> = keys.iter().map(source).collect();
        let inputs = BuildInputs::all(&Arc::new(read.iter().collect()));
        let mut outcome = |outcome: SourceOutcome| {
            assert_eq!(outcome.rows.rows_rejected, 0);
            Ok(())
        };
        let converted = self.with(rng, |conversion| conversion.build(inputs, &mut outcome)).unwrap();
        let layout = |groups: &Vec<BuiltGroup>| {
            let group = |group: &BuiltGroup| {
                let segments = group.segments.iter().map(|segment| members(&converted, segment)).collect();
                (segments, group.files.iter().map(|file| file.sha256.clone()).collect())
            };
            groups.iter().map(group).collect()
        };
        converted.partitions.iter().map(|(partition, groups)| (partition.clone(), layout(groups))).collect()
    }

    /// Takes the segments of `partition` affected by `changed`; `new`: those of them that have rows in it now.
    fn touch(&mut self, partition: &str, changed: &BTreeSet<String>, new: &BTreeSet<String>) -> Touched {
        let segments = self.segments.remove(partition).unwrap_or_default();
        let old = segments.iter().flat_map(|s| &s.members).map(|m| &m.0).filter(|key| changed.contains(*key));
        let keys: BTreeSet<String> = old.chain(new).cloned().collect();
        let mut touched = vec![(false, true); segments.len()];
        for key in &keys {
            let last = |segment: &Segment| segment.members.last().unwrap().0.clone();
            let at = segments.iter().position(|segment| last(segment) >= *key);
            let open = segments.len().checked_sub(1).filter(|at| segments[*at].cut == Cut::None);
            let Some(at) = at.or(open) else { continue };
            // Sorted rows are reused only if all new ones come after them.
            touched[at] = (true, touched[at].1 && last(&segments[at]) < *key);
            if last(&segments[at]) == *key && at + 1 < segments.len() {
                touched[at + 1] = (true, false);
            }
        }
        let mut taken = Touched::default();
        for (segment, (is_touched, appended)) in segments.into_iter().zip(touched) {
            let (members, parts) = (&segment.members, &segment.parts);
            if !is_touched {
                taken.kept.push(segment);
            } else if self.sorted && !appended {
                taken.read.extend(members.iter().map(|m| m.0.clone()).filter(|key| !changed.contains(key)));
            } else {
                let source = |(key, rows, share): &(String, u64, u64)| {
                    let (key, keep) = (key.clone(), !changed.contains(key));
                    StoredSource { key, rows: *rows, share: *share, keep }
                };
                let sources = members.iter().map(source).collect();
                let (partition, parts) = (partition.to_owned(), parts.clone());
                taken.stored.push(StoredSegment { partition, parts, sources });
            }
        }
        taken
    }

    /// Builds the partitions affected by `changed`.
    fn update(&mut self, rng: &mut Rng, changed: &BTreeSet<String>) {
        let present: Vec<SourceRef> = changed.iter().filter_map(|key| self.source(key)).collect();
        let present = Arc::new(present.iter().collect::<SourceList>());
        let buffered = self.with(rng, |conversion| conversion.buffer(&present)).unwrap();
        let mut new: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for source in &buffered.sources {
            for partition in source.partitions.keys() {
                new.entry(partition.clone()).or_default().insert(source.rows.source.clone());
            }
        }
        let is_touched = |(_, segments): &(&String, &Vec<Segment>)| {
            segments.iter().flat_map(|segment| &segment.members).any(|(key, ..)| changed.contains(key))
        };
        let mut partitions: BTreeSet<String> =
            self.segments.iter().filter(is_touched).map(|(p, _)| p.clone()).collect();
        partitions.extend(new.keys().cloned());
        let (mut kept, mut stored, mut read) =
            (BTreeMap::new(), Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
        for partition in &partitions {
            let taken = self.touch(partition, changed, new.get(partition).unwrap_or(&BTreeSet::new()));
            stored.extend(taken.stored);
            for key in taken.read {
                read.entry(key).or_default().insert(partition.clone());
            }
            kept.insert(partition.clone(), taken.kept);
        }
        let sources: Vec<SourceRef> = read.keys().map(|key| self.source(key).unwrap()).collect();
        let only = read.into_iter().map(|(key, only)| (key, Arc::new(only))).collect();
        let (read, layout) = (Arc::new(sources.iter().collect()), BuildLayout::Segments);
        let inputs = BuildInputs { read, only, buffered: Some(buffered), stored, layout };
        let converted = self.with(rng, |conversion| conversion.build(inputs, &mut |_| Ok(()))).unwrap();
        for (partition, groups) in &converted.partitions {
            for group in groups {
                let [segment] = &group.segments[..] else { panic!("{group:?}") };
                let parts = locate(&group.files, &[segment.row_groups]).remove(0);
                let segment = Segment { members: members(&converted, segment), cut: segment.cut, parts };
                kept.get_mut(partition).unwrap().push(segment);
            }
        }
        for (partition, mut segments) in kept {
            segments.sort_by(|a, b| a.members.cmp(&b.members));
            self.regroup(rng, partition, segments);
        }
    }

    /// Builds the groups of a partition by copying row groups.
    fn regroup(&mut self, rng: &mut Rng, partition: String, segments: Vec<Segment>) {
        self.layout.remove(&partition);
        if segments.is_empty() {
            return;
        }
        let last_closed = segments.iter().rposition(|segment| segment.cut == Cut::File);
        let (mut groups, mut open): (Vec<Vec<Segment>>, Vec<Segment>) = (Vec::new(), Vec::new());
        for (at, segment) in segments.into_iter().enumerate() {
            let ends = segment.cut == Cut::File || last_closed.is_none_or(|last| at > last);
            open.push(segment);
            if ends {
                groups.push(std::mem::take(&mut open));
            }
        }
        let parts: Vec<Vec<RowGroups>> =
            groups.iter().map(|group| group.iter().flat_map(|segment| segment.parts.clone()).collect()).collect();
        let files = self.with(rng, |conversion| conversion.assemble(&parts)).unwrap();
        let (mut stored, mut layout) = (Vec::new(), Vec::new());
        for (group, files) in groups.into_iter().zip(files) {
            let counts: Vec<usize> =
                group.iter().map(|segment| segment.parts.iter().map(|part| part.range.len()).sum()).collect();
            let digests = files.iter().map(|file| file.sha256.clone()).collect();
            layout.push((group.iter().map(|segment| segment.members.clone()).collect(), digests));
            let located = locate(&files, &counts);
            stored.extend(group.into_iter().zip(located).map(|(segment, parts)| Segment { parts, ..segment }));
        }
        self.segments.insert(partition.clone(), stored);
        self.layout.insert(partition, layout);
    }
}

const TYPES: [&str; 22] = [
    "boolean",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "string",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "json",
    "decimal(9,2)",
    "decimal(18,3)",
    "decimal(38,10)",
    "string",
];

/// A cell of `ty`; sometimes null.
fn cell(rng: &mut Rng, ty: &str) -> String {
    if rng.one_in(6) {
        return String::new();
    }
    let (year, month, day) = (1900 + rng.below(200), 1 + rng.below(12), 1 + rng.below(28));
    let time = format!("{:02}:{:02}:{:02}.{:06}", rng.below(24), rng.below(60), rng.below(60), rng.below(1_000_000));
    match ty {
        "boolean" => ["true", "false"][rng.below(2) as usize].into(),
        "int8" | "int16" | "int32" | "int64" => {
            let bits: u32 = ty[3..].parse().unwrap();
            ((rng.next_u64() as i64) >> (64 - bits) >> (rng.below(2) * u64::from(bits - 4))).to_string()
        }
        "uint8" | "uint16" | "uint32" | "uint64" => {
            let bits: u32 = ty[4..].parse().unwrap();
            (rng.next_u64() >> (64 - bits)).to_string()
        }
        "float32" | "float64" => match rng.below(5) {
            0 => "-0.0".into(),
            1 => "NaN".into(),
            _ => format!("{}.{}e{}", rng.below(100), rng.below(1000), rng.below(20)),
        },
        "date" => format!("{year}-{month:02}-{day:02}"),
        "time" => time,
        "timestamp" => format!("{year}-{month:02}-{day:02} {time}"),
        "timestamptz" => format!("{year}-{month:02}-{day:02}T{time}+02:00"),
        "uuid" => format!("{:08x}-0000-4000-8000-{:012x}", rng.below(1 << 32), rng.below(1 << 48)),
        "json" => format!("\"{{\"\"a\"\": [{}, null]}}\"", rng.below(1000)),
        "string" => match rng.below(3) {
            0 => format!("word{}", rng.below(9)),
            1 => format!("\"é, {}\n\"\"x\"\"\"", rng.next_u64()),
            _ => "x".repeat(1 + rng.below(300) as usize),
        },
        _ => format!("-{}.{}", rng.below(1_000_000), rng.below(100)),
    }
}

fn text(rng: &mut Rng, names: &[String], partitions: u64) -> String {
    let mut text = format!("p,{}\n", names.join(","));
    let partitions = 1 + rng.below(partitions);
    for _ in 0..rng.below(40) {
        let cells: Vec<String> = TYPES.iter().map(|ty| cell(rng, ty)).collect();
        writeln!(text, "{},{}", rng.below(partitions), cells.join(",")).unwrap();
    }
    text
}

fn check(seed: u64, more: &str, targets: (u64, u64), partitions: u64) {
    let mut rng = Rng::new(seed);
    let names: Vec<String> = (0..TYPES.len()).map(|at| format!("c{at}")).collect();
    let columns: Vec<String> =
        names.iter().zip(TYPES).map(|(name, ty)| format!(r#"{{ "name": "{name}", "type": "{ty}" }}"#)).collect();
    let mapping = format!(
        r#"{{ "columns": [ {{ "name": "p", "type": "int32" }}, {} ], {more}
            "parquet": {{ "row_group_rows": 1024, "file_bytes_max": 65536,
                "file_text_bytes": {}, "tail_text_bytes": {} }} }}"#,
        columns.join(","),
        targets.0,
        targets.1
    );
    let mut table = Table::new(&mapping);
    let mut keys: BTreeSet<String> = BTreeSet::new();
    for step in 0..10 {
        let mut changed = BTreeSet::new();
        for _ in 0..if step == 0 { 25 } else { 1 + rng.below(3) } {
            let any = keys.iter().nth(rng.below(keys.len().max(1) as u64) as usize).cloned();
            match (rng.below(4), any) {
                (0, Some(key)) => {
                    table.lake.remove(&key);
                    keys.remove(&key);
                    changed.insert(key);
                }
                (1, Some(key)) => {
                    table.lake.put(&key, text(&mut rng, &names, partitions));
                    changed.insert(key);
                }
                _ => {
                    let key = format!("{:04}.csv", rng.below(2_000) + if rng.one_in(2) { 2_000 * step } else { 0 });
                    table.lake.put(&key, text(&mut rng, &names, partitions));
                    keys.insert(key.clone());
                    changed.insert(key);
                }
            }
        }
        table.update(&mut rng, &changed);
        let clean = table.clean(&mut rng);
        assert_eq!(table.layout, clean, "seed {seed}, step {step}");
    }
}

#[test]
fn tables_built_in_steps_have_the_bytes_of_a_single_build() {
    let targets = [(60_000, 12_000), (20_000, 20_000), (1 << 30, 1 << 20), (200_000, 6_000)];
    let sizes = ["", r#""partition_by": ["p"],"#];
    for (nth, targets) in targets.into_iter().enumerate() {
        for (at, more) in sizes.iter().enumerate() {
            check(100 + 10 * nth as u64 + at as u64, more, targets, 3);
        }
    }
}

#[test]
fn more_partitions_than_open_readers_change_at_once() {
    check(300, r#""partition_by": ["p"],"#, (40_000, 8_000), 90);
}

#[test]
fn sorted_tables_built_in_steps_have_the_bytes_of_a_single_build() {
    for (nth, targets) in [(60_000, 12_000), (1 << 30, 1 << 20), (200_000, 6_000)].into_iter().enumerate() {
        check(200 + nth as u64, r#""partition_by": ["p"], "sort_by": ["c11", "c4"],"#, targets, 3);
        check(210 + nth as u64, r#""sort_by": ["c2"],"#, targets, 3);
    }
}
