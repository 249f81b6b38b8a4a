//! Documents that are good, and documents with everything that can be wrong with one.

use std::fmt::Write;
use std::path::PathBuf;

use super::limits::{DEPTH_MAX, EXPANDED_BYTES_MAX, NODES_MAX, YAML_BYTES_MAX};
use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/dashboards")
}

/// The problems of a text, a line each.
fn shown(text: &[u8]) -> String {
    let mut shown = String::new();
    for Problem { kind, message, path, line, column } in examine(text).problems {
        writeln!(shown, "> {line}:{column} {} `{path}` {message}", kind.as_str()).unwrap();
    }
    shown
}

fn kinds(text: &[u8]) -> Vec<ProblemKind> {
    examine(text).problems.into_iter().map(|problem| problem.kind).collect()
}

#[test]
fn each_bad_document_has_its_problems_with_line_and_column() {
    let path = folder().join("bad.txt");
    let file = std::fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    let mut count = 0;
    for case in file.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let expected_bytes: usize = rest.split_inclusive('\n').take_while(|l| l.starts_with("> ")).map(str::len).sum();
        let text = &rest[expected_bytes..];
        let found = shown(text.as_bytes());
        assert!(!found.is_empty(), "{name}");
        write!(written, "=== {name}\n{found}{text}").unwrap();
        count += 1;
    }
    assert!(count >= 60, "{count}");
    if folder().join("update").exists() {
        std::fs::write(&path, &written).unwrap();
    } else {
        pretty_assert(&written, &file);
    }
}

/// Shows the first line that differs.
fn pretty_assert(found: &str, expected: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of bad.txt", number + 1);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn good_documents_have_no_problem() {
    for entry in std::fs::read_dir(folder().join("good")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(shown(&text), "", "{}", path.display());
        assert_eq!(examine(&text).warnings, [], "{}", path.display());
    }
    assert_eq!(shown(TEMPLATE.as_bytes()), "");
}
