//! The changelog lists the current version, in the format of Keep a Changelog.

use super::markdown::Page;

const SECTIONS: &[&str] = &["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

/// The version number, or `None`.
fn number(text: &str) -> Option<[u64; 3]> {
    let parts: Vec<u64> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Problems of a changelog whose newest version should be `current`.
fn faults(text: &str, current: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: Vec<[u64; 3]> = Vec::new();
    let mut entries = 0;
    for (at, line) in text.lines().enumerate() {
        let mut fault = |what: String| faults.push(format!("line {}: {what}", at + 1));
        if let Some(heading) = line.strip_prefix("## ") {
            entries = 0;
            if heading == "[Unreleased]" && versions.is_empty() {
                continue;
            }
            let found = heading.strip_prefix('[').and_then(|rest| rest.split_once("] - "));
            let Some((version, date)) = found.and_then(|(version, date)| Some((number(version)?, date))) else {
                fault(format!("`{heading}`, expected `[1.2.3] - 2026-01-31`"));
                continue;
            };
            if chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").is_err() || date.len() != 10 {
                fault(format!("`{date}` is not a date"));
            }
            if versions.last().is_some_and(|newer| *newer <= version) {
                fault(format!("`{heading}` is below an older one"));
            }
            versions.push(version);
        } else if let Some(section) = line.strip_prefix("### ") {
            if !SECTIONS.contains(&section) {
                fault(format!("`{section}`, expected one of {SECTIONS:?}"));
            }
        } else if line.starts_with("- ") {
            entries += 1;
        }
    }
    if versions.first().copied() != number(current) {
        faults.push(format!("the newest version is {:?}, that of Cargo.toml {current}", versions.first()));
    }
    if entries == 0 {
        faults.push("the oldest version has no entry".to_owned());
    }
    faults
}

#[test]
fn changelog_starts_with_the_current_version() {
    let page = Page::read("CHANGELOG.md");
    assert_eq!(faults(&page.text, env!("CARGO_PKG_VERSION")), Vec::<String>::new());
}

#[test]
fn wrong_changelogs_are_detected() {
    let good = "## [Unreleased]\n### Fixed\n- x\n## [1.2.0] - 2026-02-01\n### Added\n- y\n## [1.1.9] - 2026-01-01\n### Added\n- z\n";
    assert_eq!(faults(good, "1.2.0"), Vec::<String>::new());
    for (from, to) in [
        ("[1.2.0]", "[1.3.0]"),
        ("[1.1.9]", "[1.2.0]"),
        ("2026-02-01", "2026-02-30"),
        ("### Fixed", "### Mended"),
        ("## [1.2.0] - ", "## 1.2.0 "),
        ("- z\n", ""),
    ] {
        assert_ne!(faults(&good.replacen(from, to, 1), "1.2.0"), Vec::<String>::new(), "{from} → {to}");
    }
}
