//! A converter of `partition,value` lines. A line without a comma is rejected, one that is `-` filtered. Files are text
//! and hold at most two rows, so that partitions have several.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::{RunError, RunErrorCode, SourceResult};
use lakemill::domain::layout::pipeline_prefix;
use lakemill::domain::pipeline::Mapping;
use lakemill::engine::convert::*;
use lakemill::engine::run::Converter;
use lakemill::ports::store::{Bucket, StoreError};

const ROWS_PER_FILE: usize = 2;

/// What one source means to one mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Partition and text of each row, in order.
    pub rows: Vec<(String, String)>,
    pub rejected: Vec<String>,
    pub filtered: u64,
}

pub fn parse(mapping: &Mapping, key: &str, text: &str) -> Parsed {
    let mut parsed = Parsed::default();
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

/// The files of a partition, given its rows in order.
pub fn encode(mapping: &Mapping, rows: &[String]) -> Vec<Vec<u8>> {
    let encode = |rows: &[String]| format!("{}\n{}\n", mapping.canonical, rows.join("\n")).into_bytes();
    rows.chunks(ROWS_PER_FILE).map(encode).collect()
}

pub fn encode_rejects(mapping: &Mapping, rejected: &[String]) -> Vec<u8> {
    format!("rejects {}\n{}\n", mapping.canonical, rejected.join("\n")).into_bytes()
}

/// The sources that have rows in a file of [`encode`].
pub fn sources_in(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().skip(1).filter_map(|row| row.split_once('|')).map(|(key, _)| key.to_owned()).collect()
}

pub struct LineConverter;

pub struct BufferedLines {
    parsed: BTreeMap<String, Parsed>,
    outcomes: Vec<SourceOutcome>,
}

impl Converter for LineConverter {
    type Buffered = BufferedLines;

    fn buffer(&self, table: &Conversion<'_>, sources: &[SourceRef]) -> Result<BufferedLines, ConvertError> {
        let mut buffered = BufferedLines { parsed: BTreeMap::new(), outcomes: Vec::new() };
        for source in sources {
            let (parsed, outcome) = read(table, source)?;
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
        sources: &[SourceRef],
        buffered: Option<BufferedLines>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Converted, ConvertError> {
        let buffered = buffered.unwrap_or(BufferedLines { parsed: BTreeMap::new(), outcomes: Vec::new() });
        let mut parsed = buffered.parsed;
        let mut outcomes = buffered.outcomes;
        for source in sources {
            let (rows, outcome) = read(table, source)?;
            parsed.insert(source.key.clone(), rows);
            outcomes.push(outcome);
        }
        outcomes.sort_by(|a, b| a.rows.source.cmp(&b.rows.source));
        let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (partition, row) in parsed.into_values().flat_map(|p| p.rows) {
            if only.is_none_or(|only| only.contains(&partition)) {
                rows.entry(partition).or_default().push(row);
            }
        }
        let mut partitions = BTreeMap::new();
        for (n, (partition, rows)) in rows.into_iter().enumerate() {
            let mut files = Vec::new();
            for (i, bytes) in encode(table.mapping, &rows).into_iter().enumerate() {
                let count = rows.len().min((i + 1) * ROWS_PER_FILE) - i * ROWS_PER_FILE;
                files.push(spool(table, &format!("{n}-{i}"), &bytes, count, sources_in(&bytes))?);
            }
            partitions.insert(partition, vec![BuiltGroup { files, segments: Vec::new() }]);
        }
        Ok(Converted { sources: outcomes, keys: Arc::default(), partitions })
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
        let name = format!("rejects-{}", sha256_hex(source.key.as_bytes()));
        Some(spool(table, &name, &bytes, parsed.rejected.len(), BTreeSet::from([source.key.clone()]))?)
    };
    let (written, rejected) = (parsed.rows.len() as u64, parsed.rejected.len() as u64);
    let outcome = SourceOutcome {
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

fn spool(
    table: &Conversion<'_>,
    name: &str,
    bytes: &[u8],
    rows: usize,
    sources: BTreeSet<String>,
) -> Result<SpooledFile, ConvertError> {
    let path = table.resources.scratch.join(name);
    std::fs::write(&path, bytes).unwrap();
    Ok(SpooledFile {
        path,
        rows: rows as u64,
        size: bytes.len() as u64,
        sha256: sha256_hex(bytes),
        sources: sources.into_iter().collect(),
    })
}
