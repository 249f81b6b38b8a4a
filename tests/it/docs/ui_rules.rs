//! `static/src/api/rules.ts`: the service's rules as TypeScript, generated from the Rust code that applies them.
//!
//! Character sets are derived by probing the parsers, so that they can't differ from them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use lakemill::domain::dashboard::limits as dashboard;
use lakemill::domain::layout::{config_key, parse_key};
use lakemill::domain::limits::{COLUMN_NAME_BYTES_MAX, KEY_BYTES_MAX, UPLOAD_BYTES_MAX};
use lakemill::domain::name::{Slug, TableName};
use lakemill::domain::partition::{self, NULL_VALUE};
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::source_name::{COMPRESSIONS, CSV_ENDINGS, TEXT_ENDINGS};
use serde_json::Value;

use super::markdown::root;
use crate::support::children::Reaped;

const PATH: &str = "static/src/api/rules.ts";
const REMEDY: &str = "LAKEMILL_WRITE_DOCS=1 scripts/test generated_";

/// The characters that satisfy a condition, as the inside of a character class.
fn class(holds: impl Fn(char) -> bool) -> String {
    fn character(c: char) -> String {
        match c {
            '\\' | ']' | '[' | '^' | '-' | '/' => format!("\\{c}"),
            ' '..='~' => c.to_string(),
            _ => {
                assert!(c <= '\u{ffff}', "a class needs the flag u");
                format!("\\u{:04x}", u32::from(c))
            }
        }
    }
    let found: Vec<char> = ('\0'..=char::MAX).filter(|c| holds(*c)).collect();
    found
        .chunk_by(|a, b| u32::from(*a) + 1 == u32::from(*b))
        .map(|run| match run {
            [first, .., last] if run.len() > 2 => format!("{}-{}", character(*first), character(*last)),
            short => short.iter().map(|c| character(*c)).collect(),
        })
        .collect()
}

/// A name's character class for the first character and for the others, and the maximum length.
fn name(parses: impl Fn(&str) -> bool) -> (String, String, usize) {
    let first = class(|c| parses(&c.to_string()));
    let others = class(|c| parses(&format!("a{c}")));
    let length = (1..).find(|length| !parses(&"a".repeat(length + 1))).unwrap();
    (first, others, length)
}

fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = items.into_iter().map(|item| format!("  \"{}\",\n", item.as_ref())).collect();
    format!("[\n{}] as const", quoted.concat())
}

/// The kinds of panels in the JSON Schema of dashboards.
fn panel_kinds(node: &Value, kinds: &mut BTreeSet<String>) {
    let properties = &node["properties"];
    if let (Value::Object(_), Some(kind)) = (&properties["id"], properties["type"]["const"].as_str()) {
        kinds.insert(kind.to_owned());
    }
    match node {
        Value::Object(fields) => fields.values().for_each(|field| panel_kinds(field, kinds)),
        Value::Array(items) => items.iter().for_each(|item| panel_kinds(item, kinds)),
        _ => {}
    }
}

fn rules() -> String {
    let (slug_first, slug_others, slug_length) = name(|text| Slug::parse(text).is_ok());
    let (table_first, table_others, table_length) = name(|text| TableName::parse(text).is_ok());
    let unseen = class(|c| c != '/' && c != '\\' && parse_key(&format!("a{c}b")).is_err());
    let escaped = class(|c| !partition::is_plain_name(&format!("a{c}")));
    let config = config_key(&Slug::parse("s").unwrap());
    let parameterless = DataType::PLAIN.iter().map(|(name, _)| *name);
    let mut kinds = BTreeSet::new();
    panel_kinds(lakemill::domain::dashboard::schema(), &mut kinds);
    let entries = [
        ("The largest upload, in bytes.", "UPLOAD_BYTES_MAX", UPLOAD_BYTES_MAX.to_string()),
        ("The longest key of an object, in bytes.", "KEY_BYTES_MAX", KEY_BYTES_MAX.to_string()),
        ("Characters that keys can't contain.", "KEY_FORBIDDEN", format!("/[{unseen}]/")),
        ("The file name of a pipeline's config.", "CONFIG_FILE", format!("{:?}", config.rsplit('/').next().unwrap())),
        ("The longest slug or dashboard name.", "SLUG_CHARACTERS_MAX", slug_length.to_string()),
        ("The first character of a slug.", "SLUG_START", format!("/^[{slug_first}]/")),
        ("A character of a slug.", "SLUG_CHARACTER", format!("/^[{slug_others}]$/")),
        ("A table name.", "TABLE_NAME", format!("/^[{table_first}][{table_others}]{{0,{}}}$/", table_length - 1)),
        ("The longest column name, in bytes.", "COLUMN_NAME_BYTES_MAX", COLUMN_NAME_BYTES_MAX.to_string()),
        ("Types of columns without parameters.", "COLUMN_TYPES", list(parameterless)),
        ("Endings of CSVs.", "CSV_ENDINGS", list(CSV_ENDINGS)),
        ("Endings of delimited text.", "TEXT_ENDINGS", list(TEXT_ENDINGS)),
        ("Endings of compressed sources.", "COMPRESSION_ENDINGS", list(COMPRESSIONS.map(|(ending, _)| ending))),
        ("Stands for null in partition paths.", "PARTITION_NULL", format!("{NULL_VALUE:?}")),
        ("Characters that partition paths escape.", "PARTITION_ESCAPED", format!("/[{escaped}]/g")),
        ("Kinds of panels.", "PANEL_KINDS", list(kinds)),
        ("The least height of a panel, in CSS pixels.", "PANEL_HEIGHT_PX_MIN", dashboard::HEIGHT_PX_MIN.to_string()),
        ("The greatest height of a panel, in CSS pixels.", "PANEL_HEIGHT_PX_MAX", dashboard::HEIGHT_PX_MAX.to_string()),
        ("Columns of a dashboard's grid.", "GRID_COLUMNS", dashboard::GRID_COLUMNS.to_string()),
    ];
    let mut text = format!("/** Rules of the service. Generated; after a change of them: `{REMEDY}`. */\n");
    for (doc, name, value) in entries {
        write!(text, "\n/** {doc} */\nexport const {name} = {value};\n").unwrap();
    }
    text
}

/// Writes a generated file, or reports that it is outdated.
fn check(path: &str, made: &str) {
    let path = root().join(path);
    if std::fs::read_to_string(&path).ok().as_deref() == Some(made) {
        return;
    }
    assert!(std::env::var_os("LAKEMILL_WRITE_DOCS").is_some(), "{} is stale; generate it: {REMEDY}", path.display());
    std::fs::write(path, made).unwrap();
}

#[test]
fn generated_ui_rules_follow_the_service() {
    check(PATH, &rules());
}

/// Needs the packages of `static`, which `scripts/test` installs.
#[test]
fn generated_api_types_follow_the_openapi_document() {
    let tool = root().join("static/node_modules/.bin/openapi-typescript");
    if !tool.exists() {
        eprintln!("skipped: {} is missing", tool.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (document, types) = (folder.path().join("openapi.json"), folder.path().join("schema.d.ts"));
    let endpoints = lakemill::web::endpoints();
    let served: Value = lakemill::web::openapi(&endpoints);
    std::fs::write(&document, served.to_string()).unwrap();
    let run = Command::new(tool).arg(&document).arg("-o").arg(&types).output_reaped().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    check("static/src/api/schema.d.ts", &std::fs::read_to_string(types).unwrap());
}
