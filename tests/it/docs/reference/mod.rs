//! The reference pages, as far as they are made: of the JSON Schemas of what people write, and of the OpenAPI document.
//!
//! A page is prose with parts between `<!-- made: WORDS -->` and `<!-- end -->`; what stands there is made anew by
//!
//! ```sh
//! LAKEMILL_WRITE_DOCS=1 scripts/test generated_reference_pages_follow_the_schemas
//! ```
//!
//! | words | what is made |
//! |---|---|
//! | `fields POINTER` | the fields of an object of the page's schema |
//! | `shared POINTER` | the fields that all kinds of a tagged choice have |
//! | `kinds POINTER` | a heading and the other fields of each of these kinds |
//! | `choices POINTER` | the values of a choice |
//! | `routes`, `types`, `errors` | of the OpenAPI document |
//! | `readers FAMILY…` | what was measured of these readers, with a sentence for each difference |
//! | `names` | the names of `parquet.readers` |

mod api;
mod fields;
mod readers;

use std::collections::BTreeSet;

use serde_json::Value;

use super::markdown::{Page, anchor, root};
use fields::Fields;

const BEGIN: &str = "<!-- made: ";
const END: &str = "<!-- end -->";

/// The pages, and the schema that each is made of.
fn sources() -> Vec<(&'static str, Value)> {
    let endpoints = lakemill::web::endpoints();
    vec![
        ("docs/pipelines.md", lakemill::domain::pipeline::document::schema().clone()),
        ("docs/dashboards.md", lakemill::domain::dashboard::schema().clone()),
        ("docs/api.md", lakemill::web::openapi(&endpoints)),
        ("docs/readers.md", serde_json::json!({})),
    ]
}

/// A part that is made: the words, and the heading that it stands under.
struct Part {
    words: String,
    heading: String,
}

fn parts(text: &str) -> Vec<Part> {
    let (mut heading, mut within) = (String::new(), false);
    let mut parts = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            within = true;
            parts.push(Part { words: words.trim().to_owned(), heading: heading.clone() });
        } else if line == END {
            within = false;
        } else if !within && line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
    }
    parts
}

/// The page's text with every part made anew.
fn remade(page: &Page, schema: &Value) -> String {
    let parts = parts(&page.text);
    let mut fields = Fields::new(schema);
    for part in &parts {
        if let Some(("fields" | "shared" | "choices", pointer)) = part.words.split_once(' ') {
            fields.has_section(pointer, &part.heading, &anchor(&part.heading));
        }
    }
    let mut text = String::new();
    let mut lines = page.text.lines();
    let mut next = parts.iter();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        if !line.starts_with(BEGIN) {
            continue;
        }
        let part = next.next().unwrap();
        let made = made(&part.words, schema, &fields);
        assert!(!made.trim().is_empty(), "{}: `{}` makes nothing", page.path, part.words);
        text.push_str(&format!("\n{}\n\n{END}\n", made.trim()));
        let closed = lines.by_ref().any(|line| line == END);
        assert!(closed, "{}: `{}` has no `{END}`", page.path, part.words);
    }
    text
}

fn made(words: &str, schema: &Value, fields: &Fields<'_>) -> String {
    match words.split_once(' ') {
        Some(("fields", pointer)) => fields.table(fields.at(pointer), &BTreeSet::new()),
        Some(("shared", pointer)) => fields.shared(pointer),
        Some(("kinds", pointer)) => fields.kinds(pointer),
        Some(("choices", pointer)) => fields.choices(pointer),
        Some(("readers", families)) => readers::table(families),
        None if words == "names" => readers::names(),
        None if words == "routes" => api::routes(schema),
        None if words == "types" => api::types(schema),
        None if words == "errors" => api::errors(),
        Some(_) | None => panic!("nobody knows how to make `{words}`"),
    }
}

#[test]
fn generated_reference_pages_follow_the_schemas() {
    let write = std::env::var_os("LAKEMILL_WRITE_DOCS").is_some();
    let mut stale = Vec::new();
    for (path, schema) in sources() {
        let page = Page::read(path);
        let made = remade(&page, &schema);
        if made != page.text {
            let line = made.lines().zip(page.text.lines()).take_while(|(new, old)| new == old).count() + 1;
            stale.push(format!("{path}:{line} is not what the schema says any more"));
            if write {
                std::fs::write(root().join(path), made).unwrap();
            }
        }
    }
    let remedy = "LAKEMILL_WRITE_DOCS=1 scripts/test generated_reference_pages_follow_the_schemas";
    assert!(stale.is_empty() || write, "{}\nmake them anew: {remedy}", stale.join("\n"));
}

#[test]
fn every_object_of_the_schemas_has_its_fields_on_the_page() {
    let mut lost = Vec::new();
    for (path, schema) in sources() {
        let page = Page::read(path);
        let words: Vec<String> = parts(&page.text).into_iter().map(|part| part.words).collect();
        if path.ends_with("/api.md") {
            assert_eq!(words, ["errors", "routes", "types"]);
            continue;
        }
        let fields = Fields::new(&schema);
        let told: Vec<&Value> = words
            .iter()
            .filter_map(|words| words.split_once(' '))
            .flat_map(|(what, pointer)| match what {
                "fields" => vec![fields.at(pointer)],
                "kinds" => fields.variants(pointer).iter().collect(),
                _ => Vec::new(),
            })
            .map(|node| &node["properties"])
            .collect();
        fields.objects(&mut |pointer, node| {
            if !told.contains(&&node["properties"]) {
                lost.push(format!("{path}: no part is made of `{pointer}`"));
            }
        });
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
