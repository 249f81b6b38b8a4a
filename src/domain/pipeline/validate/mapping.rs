//! Validates one mapping.

use std::collections::HashMap;
use std::time::Duration;

use super::columns::{is_expression, name};
use super::report::{Pointer, Report};
use super::{canonical, columns, dialect, files, partitions, publish, variants};
use crate::domain::limits::{
    FRESHNESS_SECONDS_MAX, FRESHNESS_SECONDS_MIN, KEEP_HISTORY_SECONDS_MAX, TABLE_NAME_BYTES_MAX, VARIANT_COLUMNS_MAX,
};
use crate::domain::name::TableName;
use crate::domain::pipeline::document::{CheckDocument, CompressionDocument, MappingDocument, ParquetDocument};
use crate::domain::pipeline::{Check, Compression, Dialect, Mapping, ParquetOptions, RejectLimits, Variants};
use crate::domain::problem::ProblemKind::{Duplicate, InvalidValue, Limit};
use crate::domain::table_log::cuts::CutTargets;
use crate::domain::text::quoted;

/// Default level of Zstandard.
const ZSTD_LEVEL_DEFAULT: i32 = 1;
/// How long files that a run replaced stay in a published table, by default: readers of earlier versions need them.
const PUBLISHED_HISTORY: Duration = Duration::from_secs(3_600);

/// Reports the table of an earlier mapping.
pub(super) fn check_table_is_new(
    document: &MappingDocument,
    at: &Pointer,
    tables: &mut HashMap<String, Pointer>,
    report: &mut Report,
) {
    let at = at.key("table");
    if report.is_replaced(&at) || TableName::parse(&document.table).is_err() {
        return;
    }
    if let Some(first) = tables.get(&document.table) {
        let message = format!("the table {} is already defined by {first}", quoted(&document.table));
        report.push(Duplicate, &at, message);
    } else {
        tables.insert(document.table.clone(), at);
    }
}

/// Reports every problem of a mapping. Returns it if its expressions can be checked: if its table, columns, `where` and
/// checks are valid; other invalid parts are dropped. `variant_columns`: of all variants up to here.
pub(super) fn resolve(
    document: &MappingDocument,
    variant_columns: usize,
    at: &Pointer,
    report: &mut Report,
) -> Option<Mapping> {
    let csv_at = at.key("csv");
    let table = table(&document.table, &at.key("table"), report);
    let files = files::resolve(&document.files, &at.key("files"), report);
    let csv = dialect::resolve(&document.csv, &csv_at, report);
    let header = (!report.is_replaced(&csv_at.key("header"))).then_some(csv.header);
    let columns_at = at.key("columns");
    let mut columns = columns::resolve(&document.columns, &csv, header, &columns_at, report);
    let partition_by = partitions::resolve(&document.partition_by, &columns, &at.key("partition_by"), report);
    let sort_by = partitions::resolve_sort(&document.sort_by, &columns, &partition_by, &at.key("sort_by"), report);
    let checks = checks(&document.checks, &at.key("checks"), report);
    let filter_at = at.key("where");
    let filter_stands = match &document.filter {
        Some(sql) => is_expression(sql, &filter_at, report),
        None => !report.is_replaced(&filter_at),
    };
    let parquet = parquet(&document.parquet, &at.key("parquet"), report);
    if !filter_stands {
        return None;
    }
    let resolved = columns.resolved.take().filter(|columns| !columns.is_empty());
    let csv = Dialect { width: columns::width(&csv, resolved.as_deref().unwrap_or_default(), &csv_at, report), ..csv };
    let read = resolved.as_deref().unwrap_or_default();
    let variants = if variant_columns > VARIANT_COLUMNS_MAX {
        let message = format!(
            "expected at most {VARIANT_COLUMNS_MAX} columns of variants in a pipeline, found {variant_columns}; each variant \
             has the columns of its table"
        );
        report.push(Limit, &at.key("variants"), message);
        Variants::default()
    } else {
        variants::resolve(document, &csv, &columns, read, at, report)
    };
    let mut mapping = Mapping {
        table: table?,
        files,
        csv,
        variants,
        columns: resolved?,
        filter: document.filter.clone(),
        checks: checks?,
        extra_columns: document.extra_columns.into(),
        missing_columns: document.missing_columns.into(),
        empty_files: document.empty_files.into(),
        duplicate_columns: document.duplicate_columns.into(),
        rejects: RejectLimits { max_rows: document.rejects.max_rows, max_ratio: document.rejects.max_ratio },
        partition_by,
        sort_by,
        when_removed: document.when_removed.into(),
        keep_history: keep_history(document, &at.key("keep_history"), report),
        freshness: freshness(document, &at.key("freshness"), report),
        publish: document.publish.iter().map(|format| (*format).into()).collect(),
        parquet,
        canonical: String::new(),
    };
    publish::check(&mapping, at, report);
    mapping.canonical = canonical::canonical(&mapping);
    Some(mapping)
}

fn table(text: &str, at: &Pointer, report: &mut Report) -> Option<TableName> {
    match TableName::parse(text) {
        Ok(name) => Some(name),
        Err(error) => {
            let kind = if text.len() > TABLE_NAME_BYTES_MAX { Limit } else { InvalidValue };
            report.push(kind, at, error.to_string());
            None
        }
    }
}

/// `None` if one of them is invalid.
fn checks(documents: &[CheckDocument], at: &Pointer, report: &mut Report) -> Option<Vec<Check>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut checks = Vec::with_capacity(documents.len());
    for (index, document) in documents.iter().enumerate() {
        let at = at.index(index);
        if let Some(name) = name(&document.name, "check name", &at.key("name"), report)
            && let Some(first) = seen.insert(name.folded(), index)
        {
            let message =
                format!("the name {} is already used by check {first} (ignoring case)", quoted(&document.name));
            report.push(Duplicate, &at.key("name"), message);
        }
        if is_expression(&document.assert, &at.key("assert"), report) {
            let (name, assert) = (document.name.clone(), document.assert.clone());
            checks.push(Check { name, assert, on_fail: document.on_fail.into() });
        }
    }
    (checks.len() == documents.len()).then_some(checks)
}

/// The seconds of a duration; the schema rejects invalid ones.
fn seconds_of(text: &str) -> u64 {
    let unit = match text.bytes().last() {
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        _ => 1,
    };
    text.trim_end_matches(['s', 'm', 'h', 'd']).parse::<u64>().unwrap_or_default().saturating_mul(unit)
}

/// `None` if any time will do.
fn freshness(document: &MappingDocument, at: &Pointer, report: &mut Report) -> Option<Duration> {
    let text = document.freshness.as_ref().map(|text| text.0.as_str())?;
    let seconds = seconds_of(text);
    if !(FRESHNESS_SECONDS_MIN..=FRESHNESS_SECONDS_MAX).contains(&seconds) {
        let days = FRESHNESS_SECONDS_MAX / 86_400;
        report.push(Limit, at, format!("expected `1m` to `{days}d`, found {}", quoted(text)));
    }
    Some(Duration::from_secs(seconds))
}

fn keep_history(document: &MappingDocument, at: &Pointer, report: &mut Report) -> Duration {
    let is_published = !document.publish.is_empty();
    let Some(text) = document.keep_history.as_ref().map(|text| text.0.as_str()) else {
        return if is_published { PUBLISHED_HISTORY } else { Duration::ZERO };
    };
    let seconds = seconds_of(text);
    if seconds > KEEP_HISTORY_SECONDS_MAX {
        let days = KEEP_HISTORY_SECONDS_MAX / 86_400;
        report.push(Limit, at, format!("expected at most `{days}d`, found {}", quoted(text)));
    }
    let keep = Duration::from_secs(seconds);
    if is_published && keep < PUBLISHED_HISTORY {
        let message =
            "readers of a published version fail once its files are deleted; expected at least `1h`, the default";
        report.warn(InvalidValue, at, format!("{message}, found {}", quoted(text)));
    }
    keep
}

fn parquet(document: &ParquetDocument, at: &Pointer, report: &mut Report) -> ParquetOptions {
    let compression = match document.compression {
        CompressionDocument::Zstd => Compression::Zstd(document.compression_level.unwrap_or(ZSTD_LEVEL_DEFAULT)),
        CompressionDocument::Snappy => Compression::Snappy,
        CompressionDocument::Lz4 => Compression::Lz4,
        CompressionDocument::None => Compression::None,
    };
    if document.compression_level.is_some() && document.compression != CompressionDocument::Zstd {
        report.push(InvalidValue, &at.key("compression_level"), "only the compression `zstd` has levels");
    }
    let (row_group_rows, file_bytes_max) = (document.row_group_rows, document.file_bytes_max);
    let (file_text_bytes, tail_text_bytes) = (document.file_text_bytes, document.tail_text_bytes);
    if tail_text_bytes > file_text_bytes {
        let message = format!("expected at most `file_text_bytes` ({file_text_bytes}), found {tail_text_bytes}");
        report.push(InvalidValue, &at.key("tail_text_bytes"), message);
    }
    let cuts = CutTargets { file_text_bytes, tail_text_bytes };
    ParquetOptions { compression, encodings: document.encodings.into(), row_group_rows, file_bytes_max, cuts }
}
