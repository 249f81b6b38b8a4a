//! Names of types that other modules can use are unique.

use std::collections::BTreeMap;

use super::{Source, product_files};

const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// Names shared by several types, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("Difference", "between logs and between tables"),
    ("Member", "of the log and of a conversion"),
    ("Members", "of the log and of a conversion"),
    ("Merge", "of segments and of sorted runs"),
    ("Objects", "of a table and of the service"),
    ("Page", "of jobs and of rows"),
    ("TableResult", "of a run, and as it is listed"),
];

/// The type that a line declares for other modules.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let mut words = rest.split_whitespace();
    words.next().filter(|word| KINDS.contains(word))?;
    words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// Types of the product that share their name with a type of another file.
pub fn types_of_one_name(files: &[Source]) -> Vec<String> {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/testing.rs");
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !is_test(&file.path)) {
        for (at, line) in file.product.lines().enumerate() {
            let Some(name) = declared(line) else { continue };
            found.entry(name).or_default().push(format!("{}:{}", file.path, at + 1));
        }
    }
    let is_shared = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    let twins = found.into_iter().filter(|(name, places)| places.len() > 1 && !is_shared(name));
    twins.map(|(name, places)| format!("{}: `{name}` is declared several times", places.join(", "))).collect()
}

#[test]
fn types_of_different_meaning_have_different_names() {
    let offences = types_of_one_name(&product_files());
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn duplicate_names_are_found() {
    let one = Source::new("src/a.rs", "pub(super) struct Item;\nstruct Own;\n");
    let other = Source::new("src/b.rs", "pub enum Item<'a> {}\nstruct Own;\npub fn struct_of() {}\n");
    assert_eq!(types_of_one_name(&[one, other]), ["src/a.rs:1, src/b.rs:1: `Item` is declared several times"]);
}
