//! A converter of `partition,value` lines. A line without a comma is rejected, the line `-` is filtered. Files are
//! text: each segment is one row group, which begins with a line of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::{RunError, RunErrorCode, SourceResult};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::pipeline::Mapping;
use lakemill::domain::table_log::cuts::{Cut, cut_after, text_share};
use lakemill::domain::table_log::entries::DeltaFile;
use lakemill::engine::convert::*;
use lakemill::engine::run::{Converter, PublishedFile, PublishedFiles};
use lakemill::ports::store::{Bucket, StoreError};

/// The first byte of a row group.
const ROW_GROUP: char = '#';

/// The rows of one source for one mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Partition and text of each row, in order.
    pub rows: Vec<(String, String)>,
    pub rejected: Vec<String>,
    pub filtered: u64,
    pub text_bytes: u64,
}

/// The rows of one source in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRows {
    pub source: String,
    pub rows: Vec<String>,
    pub share: u64,
}

impl Parsed {
    /// The rows by partition.
    pub fn by_partition(&self, key: &str) -> BTreeMap<String, SourceRows> {
        let read = (self.rows.len() + self.rejected.len()) as u64 + self.filtered;
        let mut all: BTreeMap<String, SourceRows> = BTreeMap::new();
        for (partition, row) in &self.rows {
            let new = || SourceRows { source: key.to_owned(), rows: Vec::new(), share: 0 };
            all.entry(partition.clone()).or_insert_with(new).rows.push(row.clone());
        }
        all.values_mut().for_each(|of| of.share = text_share(self.text_bytes, of.rows.len() as u64, read));
        all
    }
}

pub fn parse(mapping: &Mapping, key: &str, text: &str) -> Parsed {
    let mut parsed = Parsed { text_bytes: text.len() as u64, ..Parsed::default() };
    for (line, record) in text.lines().enumerate().filter(|(_, r)| !r.is_empty()) {
        match record.split_once(',') {
            Some((p, value)) => {
                let partition = if mapping.partition_by.is_empty() { String::new() } else { format!("p={p}") };
                parsed.rows.push((partition, format!("{key}|{line}|{p}|{value}")));
            }
            None if record == "-" => parsed.filtered += 1,
            None => parsed.rejected.push(format!("{key}|{line}|{record}")),
        }
    }
    parsed
}

/// The sources of each segment of a partition, and where groups end.
pub fn segments(mapping: &Mapping, sources: Vec<SourceRows>) -> Vec<(Vec<SourceRows>, Cut)> {
    let mut segments: Vec<(Vec<SourceRows>, Cut)> = Vec::new();
    for source in sources {
        let cut = cut_after(&source.source, source.share, mapping.parquet.cuts);
        match segments.last_mut().filter(|(_, ended)| *ended == Cut::None) {
            Some((members, ended)) => {
                members.push(source);
                *ended = cut;
            }
            None => segments.push((vec![source], cut)),
        }
    }
    segments
}

/// The groups of a partition's segments.
pub fn groups<T>(segments: Vec<(T, Cut)>) -> Vec<Vec<(T, Cut)>> {
    let closed = segments.iter().rposition(|(_, cut)| *cut == Cut::File).map_or(0, |at| at + 1);
    let mut groups: Vec<Vec<(T, Cut)>> = Vec::new();
    let mut is_open = false;
    for (at, (segment, cut)) in segments.into_iter().enumerate() {
        match groups.last_mut().filter(|_| is_open) {
            Some(group) => group.push((segment, cut)),
            None => groups.push(vec![(segment, cut)]),
        }
        is_open = at < closed && cut != Cut::File;
    }
    groups
}

/// A segment's row group.
pub fn encode(mapping: &Mapping, sources: &[SourceRows]) -> String {
    let rows: String = sources.iter().flat_map(|source| &source.rows).map(|row| format!("{row}\n")).collect();
    format!("{ROW_GROUP}{}\n{rows}", mapping.canonical)
}

pub fn encode_rejects(mapping: &Mapping, rejected: &[String]) -> Vec<u8> {
    format!("rejects {}\n{}\n", mapping.canonical, rejected.join("\n")).into_bytes()
}

/// The row groups of a file.
fn row_groups(text: &str) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for line in text.lines() {
        match groups.last_mut().filter(|_| !line.starts_with(ROW_GROUP)) {
            Some(group) => *group += &format!("{line}\n"),
            None => groups.push(format!("{line}\n")),
        }
    }
    groups
}

pub struct LineConverter;

pub struct BufferedLines {
    parsed: BTreeMap<String, Parsed>,
    outcomes: Vec<SourceOutcome>,
}

impl Converter for LineConverter {
    type Buffered = BufferedLines;

    fn buffer(&self, table: &Conversion<'_>, sources: &Arc<SourceList>) -> Result<BufferedLines, ConvertError> {
        let mut buffered = BufferedLines { parsed: BTreeMap::new(), outcomes: Vec::new() };
        for source in sources.iter() {
            let (parsed, outcome) = read(table, &source)?;
            buffered.parsed.insert(source.key.clone(), parsed);
            buffered.outcomes.push(outcome);
        }
        Ok(buffered)
    }

    fn outcomes<'h>(&self, buffered: &'h BufferedLines) -> &'h [SourceOutcome] {
        &buffered.outcomes
    }

    fn build(
        &self,
        table: &Conversion<'_>,
        inputs: BuildInputs<BufferedLines>,
        outcomes: &mut OutcomeSink<'_>,
    ) -> Result<Converted, ConvertError> {
        let buffered = inputs.buffered.unwrap_or(BufferedLines { parsed: BTreeMap::new(), outcomes: Vec::new() });
        let mut rows: BTreeMap<String, BTreeMap<String, SourceRows>> = BTreeMap::new();
        let mut add = |partition: String, of: SourceRows| {
            let twice = rows.entry(partition).or_default().insert(of.source.clone(), of);
            assert_eq!(twice, None, "a source's rows were given twice");
        };
        for (key, parsed) in &buffered.parsed {
            parsed.by_partition(key).into_iter().for_each(|(partition, of)| add(partition, of));
        }
        for source in inputs.read.iter() {
            let (parsed, outcome) = read(table, &source)?;
            outcomes(outcome)?;
            let only = inputs.only.get(&source.key);
            let wanted = |partition: &String| only.is_none_or(|only| only.contains(partition));
            let own = parsed.by_partition(&source.key).into_iter().filter(|(partition, _)| wanted(partition));
            own.for_each(|(partition, of)| add(partition, of));
        }
        for StoredSegment { partition, parts, sources } in inputs.stored {
            let text: String = parts.iter().map(part).collect();
            let mut lines = text.lines().filter(|line| !line.starts_with(ROW_GROUP)).map(str::to_owned);
            for StoredSource { key, rows, share, keep } in sources {
                let rows: Vec<String> = lines.by_ref().take(rows as usize).collect();
                assert!(rows.iter().all(|row| row.starts_with(&format!("{key}|"))), "{rows:?} are not of `{key}`");
                if keep {
                    add(partition.clone(), SourceRows { source: key, rows, share });
                }
            }
            assert_eq!(lines.next(), None, "a stored segment has more rows than its sources");
        }
        let keys: BTreeSet<&str> = rows.values().flat_map(BTreeMap::keys).map(String::as_str).collect();
        let keys: Arc<TextList> = Arc::new(keys.into_iter().collect());
        let partitions = rows.into_iter().map(|(partition, of)| {
            let segments = segments(table.mapping, of.into_values().collect());
            let groups = match inputs.layout {
                BuildLayout::Groups => groups(segments),
                BuildLayout::Segments => segments.into_iter().map(|segment| vec![segment]).collect(),
            };
            Ok((partition, groups.iter().map(|group| built(table, group, &keys)).collect::<Result<_, ConvertError>>()?))
        });
        Ok(Converted { partitions: partitions.collect::<Result<_, ConvertError>>()?, keys })
    }

    fn assemble(
        &self,
        table: &Conversion<'_>,
        groups: &[Vec<RowGroups>],
    ) -> Result<Vec<Vec<SpooledFile>>, ConvertError> {
        let file = |parts: &Vec<RowGroups>| {
            let text: String = parts.iter().map(part).collect();
            let rows = text.lines().filter(|line| !line.starts_with(ROW_GROUP)).count();
            Ok(vec![spool(table, &text, rows, row_groups(&text).len())?])
        };
        groups.iter().map(file).collect()
    }

    fn describe(&self, file: &SpooledFile, published: &PublishedFiles) -> Result<PublishedFile, RunError> {
        let stats = format!(r#"{{"numRecords":{}}}"#, file.rows);
        Ok((published.delta_made_ms().map(|made_ms| DeltaFile { made_ms, stats }), None))
    }

    fn join_rejects(&self, parts: &[(&str, &SpooledFile)], to: &Path) -> Result<(), RunError> {
        let mut all = String::new();
        for (table, part) in parts {
            all.push_str(&format!("{table}: {}", std::fs::read_to_string(&part.path).unwrap()));
        }
        std::fs::write(to, all).unwrap();
        Ok(())
    }
}

fn part(part: &RowGroups) -> String {
    let text = std::fs::read_to_string(&part.path).unwrap();
    row_groups(&text)[part.range.clone()].concat()
}

fn built(
    table: &Conversion<'_>,
    group: &[(Vec<SourceRows>, Cut)],
    keys: &TextList,
) -> Result<BuiltGroup, ConvertError> {
    let mut segments = Vec::new();
    for (sources, cut) in group {
        let mut members = Members::default();
        for of in sources {
            let source = keys.position(&of.source).unwrap() as u32;
            members.push(Member { source, rows: of.rows.len() as u64, share: of.share });
        }
        let rows = sources.iter().map(|of| of.rows.len() as u64).sum();
        segments.push(BuiltSegment { members, rows, row_groups: 1, cut: *cut });
    }
    let text: String = group.iter().map(|(sources, _)| encode(table.mapping, sources)).collect();
    let rows = segments.iter().map(|segment| segment.rows as usize).sum();
    Ok(BuiltGroup { files: vec![spool(table, &text, rows, segments.len())?], segments })
}

fn read(table: &Conversion<'_>, source: &SourceRef) -> Result<(Parsed, SourceOutcome), ConvertError> {
    let changed = || ConvertError::SourceChanged { key: source.key.clone() };
    let key = format!("{}{}", pipeline_prefix(table.slug), source.key);
    let mut reader = match table.store.get(Bucket::Lake, &key, source.etag.as_ref()) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. }) => return Err(changed()),
        Err(error) => return Err(RunError::new(RunErrorCode::S3Error, error.to_string()).into()),
    };
    let mut text = String::new();
    reader.body.read_to_string(&mut text).unwrap();
    let parsed = parse(table.mapping, &source.key, &text);
    let mut partitions: BTreeMap<String, u64> = BTreeMap::new();
    for (partition, _) in &parsed.rows {
        *partitions.entry(partition.clone()).or_default() += 1;
    }
    let rejects = if parsed.rejected.is_empty() {
        None
    } else {
        let bytes = encode_rejects(table.mapping, &parsed.rejected);
        Some(spool(table, &String::from_utf8(bytes).unwrap(), parsed.rejected.len(), 1)?)
    };
    let (written, rejected) = (parsed.rows.len() as u64, parsed.rejected.len() as u64);
    let outcome = SourceOutcome {
        extra_columns: Vec::new(),
        variant: None,
        rows: SourceResult {
            source: source.key.clone(),
            rows_read: written + rejected + parsed.filtered,
            rows_written: written,
            rows_rejected: rejected,
            rows_filtered: parsed.filtered,
            blank_lines: 0,
            note: None,
        },
        sha256: sha256_hex(text.as_bytes()),
        etag: reader.meta.etag.map(|e| e.0),
        size: reader.meta.size,
        partitions,
        rejects,
        warnings: BTreeMap::new(),
        text_bytes: reader.meta.size,
        counted_bytes: reader.meta.size,
    };
    Ok((parsed, outcome))
}

fn spool(table: &Conversion<'_>, text: &str, rows: usize, row_groups: usize) -> Result<SpooledFile, ConvertError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let path = table.resources.scratch.join(format!("file-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&path, text).unwrap();
    let (size, sha256) = (text.len() as u64, sha256_hex(text.as_bytes()));
    Ok(SpooledFile { path, rows: rows as u64, size, sha256, row_groups })
}
