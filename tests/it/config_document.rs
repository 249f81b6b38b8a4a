//! PipelineConfig's types, its JSON Schema, and the resolution of documents.

use lakemill::domain::pipeline::document::schema;
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::pipeline::validate::parse;
use lakemill::domain::pipeline::*;
use lakemill::domain::table_log::cuts::CutTargets;
use serde_json::{Value, json};

const FULL: &str = include_str!("../../testdata/configs/full.json");

fn mapping(document: &Value) -> Mapping {
    let mut pipeline = parse(&document.to_string()).unwrap_or_else(|p| panic!("{p:#?}"));
    pipeline.mappings.remove(0)
}

/// A mapping with the members of `change` merged in.
fn minimal(change: Value) -> Value {
    let mut mapping = json!({
        "table": "t", "files": ["*.csv"],
        "columns": [{ "name": "id", "type": "int64" }, { "name": "at", "type": "timestamp" }]
    });
    for (name, value) in change.as_object().unwrap() {
        mapping[name] = value.clone();
    }
    json!({ "version": 1, "mappings": [mapping] })
}

#[test]
fn full_example_resolves_as_written() {
    let pipeline = parse(FULL).unwrap_or_else(|p| panic!("{p:#?}"));
    assert_eq!((pipeline.title.as_str(), pipeline.description.as_str(), pipeline.auto_run), ("NYC trips", "", true));
    let [trips] = &pipeline.mappings[..] else { panic!("one mapping") };
    assert_eq!(trips.table.as_str(), "trips");
    assert_eq!(trips.files, ["trips/**/*.csv", "trips/**/*.csv.gz"]);
    let pickup = &trips.columns[0];
    assert_eq!(pickup.name.as_str(), "pickup_at");
    assert_eq!(pickup.source, ColumnSource::Header(vec!["tpep_pickup_datetime".into(), "pickup".into()]));
    assert_eq!((pickup.ty, pickup.nullable, pickup.on_error), (DataType::Timestamp, false, OnError::Reject));
    assert_eq!(pickup.formats, ["%Y-%m-%d %H:%M:%S"]);
    assert_eq!(trips.columns[1].source, ColumnSource::Header(vec!["vendor".into()]));
    assert_eq!(trips.columns[2].ty, DataType::Decimal { precision: 10, scale: 2 });
    assert!(matches!(&trips.columns[3].source, ColumnSource::Expr(sql) if sql.starts_with("CASE")));
    assert_eq!(trips.filter.as_deref(), Some("fare >= 0"));
    assert_eq!(
        trips.checks,
        [Check { name: "fare_is_sane".into(), assert: "fare < 5000".into(), on_fail: OnFail::Reject }]
    );
    let fields: Vec<_> = trips.partition_by.iter().map(|p| (p.column, p.transform, p.name.as_str())).collect();
    assert_eq!(fields, [(0, Transform::Day, "pickup_day"), (1, Transform::Identity, "vendor")]);
    assert_eq!(trips.sort_by, [0]);
    assert_eq!(trips.stored_columns(), [0, 2, 3]);
    assert_eq!(
        trips.parquet,
        ParquetOptions {
            compression: Compression::Zstd(1),
            encodings: Encodings::Compatible,
            row_group_rows: 1_048_576,
            file_bytes_max: 268_435_456,
            cuts: CutTargets { file_text_bytes: 268_435_456, tail_text_bytes: 16_777_216 },
        }
    );
}

#[test]
fn full_example_spells_out_every_default() {
    let mut full: Value = serde_json::from_str(FULL).unwrap();
    let spelt_out = mapping(&full);
    for optional in ["csv", "extra_columns", "missing_columns", "duplicate_columns", "rejects", "parquet"] {
        full["mappings"][0].as_object_mut().unwrap().remove(optional);
    }
    full["mappings"][0]["columns"][2].as_object_mut().unwrap().remove("on_error");
    full["mappings"][0]["checks"][0].as_object_mut().unwrap().remove("on_fail");
    assert_eq!(mapping(&full), spelt_out);
    let bare = mapping(&minimal(json!({})));
    assert_eq!(bare.csv, Dialect::default());
    assert_eq!((bare.filter, bare.checks, bare.partition_by, bare.sort_by), (None, vec![], vec![], vec![]));
    assert!(bare.columns[0].nullable && bare.columns[0].formats.is_empty() && bare.columns[0].timezone.is_none());
}

#[test]
fn columns_without_a_header_are_numbered_without_computed_ones() {
    let document = minimal(json!({
        "csv": { "header": false },
        "columns": [
            { "name": "a", "type": "int8" },
            { "name": "twice", "type": "int8", "expr": "a * 2" },
            { "name": "b", "type": "int8" },
            { "name": "z", "type": "int8", "from": 7 },
            { "name": "c", "type": "int8" }
        ]
    }));
    let positions: Vec<_> = mapping(&document).columns.into_iter().map(|c| c.source).collect();
    let at = ColumnSource::Position;
    assert_eq!(positions, [at(0), ColumnSource::Expr("a * 2".into()), at(1), at(7), at(3)]);
}

#[test]
fn partitions_are_named_after_their_column_and_transform() {
    let document = minimal(json!({ "partition_by": [
        "ID", { "column": "at", "transform": "month" }, { "column": "at", "transform": "hour", "name": "h" }
    ] }));
    let mapping = mapping(&document);
    let names: Vec<_> = mapping.partition_by.iter().map(|p| (p.column, p.name.as_str())).collect();
    assert_eq!(names, [(0, "id"), (1, "at_month"), (1, "h")]);
}

#[test]
fn dialects_resolve_to_bytes() {
    let csv = mapping(&minimal(json!({ "csv": {
        "delimiter": "||", "quote": "'", "escape": "\\", "comment": "#", "encoding": "latin1", "decimal": ",",
        "thousands": ".", "quotes": "lenient", "record_terminator": "cr", "ragged_rows": "pad", "skip_rows": 3.0
    } })))
    .csv;
    assert_eq!((&csv.delimiter[..], csv.quote, csv.escape), (&b"||"[..], Some(b'\''), Some(b'\\')));
    assert_eq!((csv.comment, csv.decimal, csv.thousands), (Some(b'#'), b',', Some(b'.')));
    assert_eq!(csv.encoding.name(), "windows-1252");
    assert_eq!((csv.quotes, csv.record_terminator), (Quotes::Lenient, RecordTerminator::Cr));
    assert_eq!((csv.ragged_rows, csv.skip_rows), (RaggedRows::Pad, 3));
    assert_eq!(mapping(&minimal(json!({ "csv": { "quote": null } }))).csv.quote, None);
    let tab = mapping(&minimal(json!({ "csv": { "delimiter": "\t" } }))).csv;
    assert_eq!(tab.delimiter, b"\t");
}

#[test]
fn equivalent_mappings_have_the_same_canonical_text() {
    let plain = mapping(&minimal(json!({ "partition_by": ["id"], "columns": [
        { "name": "id", "type": "decimal(10,2)" }, { "name": "at", "type": "timestamp" }
    ] })));
    let other = mapping(&minimal(json!({
        "csv": { "encoding": "UTF8", "header": true, "delimiter": "," },
        "partition_by": [{ "name": "id", "transform": "identity", "column": "ID" }],
        "columns": [
            { "type": "decimal(10, 2)", "name": "id", "from": ["id"], "on_error": "reject" },
            { "name": "at", "type": "timestamp", "from": "at", "expr": null }
        ],
        "parquet": { "compression_level": 1 }
    })));
    assert_eq!(plain.canonical, other.canonical);
}

#[test]
fn canonical_text_changes_only_with_what_can_change_the_table() {
    let base = mapping(&minimal(json!({})));
    for same in [
        json!({ "files": ["other/*.csv"] }),
        json!({ "rejects": { "max_rows": 5 } }),
        json!({ "checks": [{ "name": "c", "assert": "id > 0", "on_fail": "warn" }] }),
    ] {
        assert_eq!(mapping(&minimal(same.clone())).canonical, base.canonical, "{same}");
    }
    for different in [
        json!({ "table": "u" }),
        json!({ "csv": { "trim": true } }),
        json!({ "where": "id > 0" }),
        json!({ "checks": [{ "name": "c", "assert": "id > 0" }] }),
        json!({ "sort_by": ["id"] }),
        json!({ "parquet": { "row_group_rows": 2048 } }),
        json!({ "parquet": { "compression": "none" } }),
        json!({ "partition_by": ["id"] }),
        json!({ "columns": [{ "name": "id", "type": "int32" }, { "name": "at", "type": "timestamp" }] }),
        json!({ "columns": [{ "name": "id", "type": "int64", "nullable": false }, { "name": "at", "type": "timestamp" }] }),
        json!({ "columns": [{ "name": "id", "type": "int64", "from": "x" }, { "name": "at", "type": "timestamp" }] }),
    ] {
        let changed = mapping(&minimal(different.clone()));
        assert_ne!(changed.canonical, base.canonical, "{different}");
    }
}

#[test]
fn byte_order_mark_and_schema_link_are_accepted() {
    let text = format!("\u{feff}{}", json!({ "$schema": "/schemas/pipeline.json", "version": 1.0, "mappings": [] }));
    assert!(parse(&text).is_ok());
}

/// Calls `visit` for every property of every object of the schema.
fn properties(node: &Value, at: &str, visit: &mut dyn FnMut(&str, &Value, &Value)) {
    if let Some(properties) = node["properties"].as_object() {
        for (name, property) in properties {
            visit(&format!("{at}/{name}"), property, node);
        }
    }
    match node {
        Value::Object(members) => {
            for (name, member) in members {
                self::properties(member, &format!("{at}/{name}"), visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, at, visit)),
        _ => {}
    }
}

#[test]
fn schema_describes_every_field_and_is_closed() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$id"], "/schemas/pipeline.json");
    assert!(!schema.to_string().contains("\"$ref\""));
    let mut count = 0;
    properties(schema, "", &mut |at, property, object| {
        count += 1;
        assert!(property["description"].as_str().is_some_and(|d| d.len() > 10), "{at} is not described");
        assert_eq!(object["additionalProperties"], false, "{at}");
        let name = at.rsplit('/').next().unwrap();
        let required = object["required"].as_array().is_some_and(|r| r.iter().any(|n| n == name));
        assert_ne!(property.get("default").is_some(), required, "{at} has either a default or is required");
    });
    assert!(count > 50, "{count} properties");
    let mapping = &schema["properties"]["mappings"]["items"];
    assert_eq!(mapping["properties"]["csv"]["properties"]["record_bytes_max"]["maximum"], 64 << 20);
    assert_eq!(mapping["properties"]["csv"]["properties"]["quote"]["default"], "\"");
    assert_eq!(mapping["required"], json!(["table", "files", "columns"]));
}

#[test]
fn schema_is_valid_and_accepts_the_full_example() {
    assert!(jsonschema::meta::is_valid(schema()));
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let full: Value = serde_json::from_str(FULL).unwrap();
    let errors: Vec<String> = validator.iter_errors(&full).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
