//! The canonical text of a mapping, for fingerprints.
//!
//! Invariant: two mappings have the same canonical text if and only if the same sources give the same table (and the same
//! failures), if they are read by the same variants.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::digest::sha256_hex;
use crate::domain::pipeline::document::{
    BlankLinesDocument, DuplicateColumnsDocument, EncodingsDocument, ExtraColumnsDocument, InferableTextsDocument,
    MissingColumnsDocument, NegativeDocument, OnErrorDocument, OnFailDocument, QuotesDocument, RaggedRowsDocument,
    RecordTerminatorDocument, TransformDocument,
};
use crate::domain::pipeline::{
    Column, ColumnSource, Compression, Dialect, Mapping, NumberFormat, OnFail, PartitionField, PathPart,
};

/// Characters of a variant's id; a manifest stores one with each source.
const VARIANT_ID_CHARS: usize = 16;

/// Everything that can change the table's bytes; without `files` and `variants` (sources are compared separately), `when_removed`,
/// `keep_history`, `freshness`, `publish`, reject limits, and checks that only warn.
pub(super) fn canonical(mapping: &Mapping) -> String {
    let checks = mapping.checks.iter().filter(|check| check.on_fail != OnFail::Warn);
    let compression = match mapping.parquet.compression {
        Compression::None => json!("none"),
        Compression::Snappy => json!("snappy"),
        Compression::Lz4 => json!("lz4"),
        Compression::Zstd(level) => json!({ "zstd": level }),
    };
    sorted_text(json!({
        "table": mapping.table.as_str(),
        "csv": dialect(&mapping.csv),
        "columns": mapping.columns.iter().map(column).collect::<Vec<_>>(),
        "where": mapping.filter,
        "checks": checks
            .map(|c| json!([c.name, c.assert, OnFailDocument::from(c.on_fail)]))
            .collect::<Vec<_>>(),
        "extra_columns": ExtraColumnsDocument::from(mapping.extra_columns),
        "missing_columns": MissingColumnsDocument::from(mapping.missing_columns),
        "duplicate_columns": DuplicateColumnsDocument::from(mapping.duplicate_columns),
        "partition_by": partitions(mapping),
        "sort_by": mapping.sort_by.iter().map(|&i| mapping.columns[i].name.as_str()).collect::<Vec<_>>(),
        "parquet": {
            "compression": compression,
            "encodings": EncodingsDocument::from(mapping.parquet.encodings),
            "row_group_rows": mapping.parquet.row_group_rows,
            "file_bytes_max": mapping.parquet.file_bytes_max,
            "file_text_bytes": mapping.parquet.cuts.file_text_bytes,
            "tail_text_bytes": mapping.parquet.cuts.tail_text_bytes,
        },
    }))
}

/// Identifies how a variant reads; `columns`: the mapping's, as the variant reads them.
pub(super) fn variant_id(csv: &Dialect, columns: &[Column]) -> String {
    let columns: Vec<Value> = columns.iter().map(column).collect();
    let text = sorted_text(json!({ "csv": dialect(csv), "columns": columns }));
    sha256_hex(text.as_bytes())[..VARIANT_ID_CHARS].to_owned()
}

fn partitions(mapping: &Mapping) -> Vec<Value> {
    let field = |p: &PartitionField| {
        json!([
            mapping.columns[p.column].name.as_str(),
            TransformDocument::from(p.transform),
            p.name.as_str(),
            InferableTextsDocument::from(p.inferable_texts)
        ])
    };
    mapping.partition_by.iter().map(field).collect()
}

fn column(column: &Column) -> Value {
    let mut members = json!({
        "name": column.name.as_str(),
        "type": column.ty.to_string(),
        "source": match &column.source {
            ColumnSource::Header(names) => json!({ "header": names }),
            ColumnSource::Position(position) => json!({ "position": position }),
            ColumnSource::Path(PathPart::Pattern(pattern)) => json!({ "path": pattern.as_str() }),
            ColumnSource::Path(PathPart::OneOf(texts)) => json!({ "path": texts }),
            ColumnSource::Expr(sql) => json!({ "expr": sql }),
        },
        "nullable": column.nullable,
        "on_error": OnErrorDocument::from(column.on_error),
        "formats": column.formats,
        "timezone": column.timezone.map(|zone| zone.name()),
    });
    // Absent where it is not used, so that tables without it keep their text.
    if let Some(format) = &column.number_format {
        members["number_format"] = number_format(format);
    }
    if column.formats.len() > 1 {
        // Values that two formats read differently were once read by the first.
        members["ambiguous_formats"] = json!("reject");
    }
    members
}

fn number_format(format: &NumberFormat) -> Value {
    json!({
        "decimal": format.decimal,
        "thousands": format.thousands,
        "currency": format.currency,
        "percent": format.percent,
        "negative": NegativeDocument::from(format.negative),
    })
}

fn dialect(csv: &Dialect) -> Value {
    let byte = |byte: Option<u8>| byte.map(|b| char::from(b).to_string());
    let mut members = json!({
        "delimiter": String::from_utf8_lossy(&csv.delimiter),
        "quote": byte(csv.quote),
        "quotes": QuotesDocument::from(csv.quotes),
        "escape": byte(csv.escape),
        "header": csv.header,
        "width": csv.width,
        "skip_rows": csv.skip_rows,
        "skip_rows_after_header": csv.skip_rows_after_header,
        "skip_footer_rows": csv.skip_footer_rows,
        "record_terminator": RecordTerminatorDocument::from(csv.record_terminator),
        "blank_lines": BlankLinesDocument::from(csv.blank_lines),
        "comment": byte(csv.comment),
        "encoding": csv.encoding.name(),
        "null_values": csv.null_values,
        "quoted_nulls": csv.quoted_nulls,
        "trim": csv.trim,
        "decimal": byte(Some(csv.decimal)),
        "thousands": byte(csv.thousands),
        "true_values": csv.true_values,
        "false_values": csv.false_values,
        "ragged_rows": RaggedRowsDocument::from(csv.ragged_rows),
        "record_bytes_max": csv.record_bytes_max,
    });
    // As with `number_format`.
    if let Some(values) = &csv.footer_values {
        members["footer_values"] = json!(values);
    }
    members
}

fn sorted_text(value: Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<String, Value> = members.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
    }
}
