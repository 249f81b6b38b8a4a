//! Every claim of the security page names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::markdown::{Page, root};

const PAGE: &str = "docs/security.md";
/// Prefix of a line with the names of tests.
const PROVED_BY: &str = "*proved by*";
/// Sections whose lists make no testable claim.
const WITHOUT_CLAIMS: &[&str] = &["Permissions", "Out of scope"];

/// The names of all tests of the crate, and whether each runs by default.
fn tests() -> BTreeSet<String> {
    fn walk(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(of(&std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut names = BTreeSet::new();
    for folder in ["src", "bin/lakemill-sql/child"] {
        walk(&root().join(folder), &mut names);
    }
    walk(&root().join("tests/it"), &mut names);
    names
}

/// Functions below `#[test]` (other attributes and comments between are skipped), and those passed to `on_both!`. An
/// ignored test proves nothing.
fn of(text: &str) -> Vec<String> {
    let lists = text.split("on_both!(").skip(1).filter_map(|rest| rest.split_once(')'));
    let listed = lists.flat_map(|(list, _)| list.split(',')).map(|name| name.trim().to_owned());
    let mut names: Vec<String> = listed.filter(|name| !name.is_empty()).collect();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            is_test = false;
        } else if is_test && line.starts_with("fn ") {
            names.extend(line[3..].split('(').next().map(str::to_owned));
            is_test = false;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test = false;
        }
    }
    names
}

/// A claim: its first line, and the tests that it names.
struct Claim {
    line: usize,
    tests: Vec<String>,
}

/// The list items of sections with claims.
fn claims(page: &Page) -> Vec<Claim> {
    let (mut claims, mut within, mut proof): (Vec<Claim>, bool, bool) = (Vec::new(), false, false);
    for (at, line) in page.text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            within = !WITHOUT_CLAIMS.contains(&heading);
        } else if within && line.starts_with("- ") {
            claims.push(Claim { line: at + 1, tests: Vec::new() });
            proof = false;
        } else if let (true, Some(claim)) = (within && line.starts_with("  "), claims.last_mut()) {
            proof |= line.trim().starts_with(PROVED_BY);
            if proof {
                claim.tests.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    claims
}

#[test]
fn every_claim_of_the_security_page_names_tests_that_exist() {
    let tests = tests();
    assert!(tests.len() > 500, "only {} tests were found", tests.len());
    let claims = claims(&Page::read(PAGE));
    let mut offences = Vec::new();
    for Claim { line, tests: named } in &claims {
        if named.is_empty() {
            offences.push(format!("{PAGE}:{line}: the claim names no test"));
        }
        let unknown = named.iter().filter(|name| !tests.contains(*name));
        offences.extend(unknown.map(|name| format!("{PAGE}:{line}: no test is called `{name}`")));
    }
    assert!(offences.is_empty(), "{}", offences.join("\n"));
    assert!(claims.len() >= 40, "only {} claims were found", claims.len());
}

#[test]
fn tests_are_found_by_their_attribute() {
    let text =
        "#[test]\n// why\n#[cfg(unix)]\nfn one() {}\nfn two() {}\n#[test]\n#[ignore = \"slow\"]\nfn three() {}\n";
    assert_eq!(of(text), ["one"]);
    assert_eq!(of("on_both!(\n    four,\n    five,\n);\n"), ["four", "five"]);
}
