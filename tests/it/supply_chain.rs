//! Dependencies come from the expected registries, have permitted licences, and are not on the list of excluded
//! packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::support::children::Reaped as _;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Permissive licences.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CC-BY-4.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Python-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// File-level copyleft licences, for unchanged packages.
const UNCHANGED: &[&str] = &["MPL-2.0"];

/// Excluded packages, and their replacements.
const BANNED: &[(&str, &str)] = &[
    ("tokio", "threads and blocking calls"),
    ("async-std", "threads and blocking calls"),
    ("smol", "threads and blocking calls"),
    ("hyper", "tiny_http and ureq"),
    ("reqwest", "ureq"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("aws-lc-sys", "rustls with ring: one stack"),
    ("serde_yaml", "serde-saphyr"),
    ("chrono-english", "declared formats: nothing is guessed"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The packages that cargo builds, without the product itself.
fn packages() -> Vec<Value> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output_reaped()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no packages") };
    packages.into_iter().filter(|package| package["name"] != env!("CARGO_PKG_NAME")).collect()
}

fn name(package: &Value) -> String {
    format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap())
}

/// Whether an SPDX expression can be satisfied with permitted licences; `/` is an old way to write OR.
fn is_good(expression: &str) -> bool {
    let of_one = |licence: String| LICENCES.contains(&licence.as_str()) || UNCHANGED.contains(&licence.as_str());
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|e| e.evaluate(|asked| of_one(asked.to_string())))
}

#[test]
fn crates_come_from_the_registry_and_match_the_lock_file() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let found = packages();
    assert!(found.len() > 100, "{}", found.len());
    for package in &found {
        assert_eq!(package["source"], REGISTRY, "{}", name(package));
        let head = format!("name = {}\nversion = {}\n", package["name"], package["version"]);
        let entry = lock.split("[[package]]\n").find(|entry| entry.starts_with(&head));
        let entry = entry.unwrap_or_else(|| panic!("{} is not in Cargo.lock", name(package)));
        assert!(entry.contains("\nchecksum = \""), "{} has no checksum", name(package));
    }
}

#[test]
fn licences_are_permitted() {
    let bad = |name: String, licence: &str| (!is_good(licence)).then(|| format!("{name}: {licence}"));
    let of_crate = |package: &Value| bad(name(package), package["license"].as_str().unwrap_or("unspecified"));
    let of_module =
        |(name, module): (&String, &Value)| bad(name.clone(), module["license"].as_str().unwrap_or("unspecified"));
    let modules = modules();
    let bad: Vec<String> = packages()
        .iter()
        .filter_map(of_crate)
        .chain(modules.iter().map(|(n, m)| (n, m)).filter_map(of_module))
        .collect();
    assert!(
        bad.is_empty(),
        "look at these licences, and add them to the list if they may be used:\n{}",
        bad.join("\n")
    );
}

/// The names of the packages that are built on any platform with any feature. Cargo's lock file and metadata have more:
/// the optional packages that weak features name (`tokio?/rt` of lettre), which nothing enables.
fn built() -> BTreeSet<String> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--all-features", "--edges", "all", "--target", "all"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(root())
        .output_reaped()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

#[test]
fn excluded_packages_are_absent() {
    let names = built();
    assert!(names.len() > 100 && names.contains("lettre"), "{names:?}");
    for (name, instead) in BANNED {
        assert!(
            !names.contains(*name),
            "`{name}` is among the dependencies; expected {instead}: cargo tree --invert {name}"
        );
    }
}

/// The entries of both lock files of npm.
fn modules() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for file in ["static/package-lock.json", "scripts/duckdb/package-lock.json"] {
        let lock: Value = serde_json::from_slice(&std::fs::read(root().join(file)).unwrap()).unwrap();
        let entries = lock["packages"].as_object().unwrap().iter();
        found.extend(entries.filter(|(name, _)| !name.is_empty()).map(|(name, entry)| (name.clone(), entry.clone())));
    }
    found
}

#[test]
fn npm_packages_have_a_hash_and_no_host() {
    let found = modules();
    assert!(found.len() > 50, "{}", found.len());
    for (name, entry) in found {
        let hash = entry["integrity"].as_str().unwrap_or_default();
        assert!(hash.starts_with("sha512-"), "{name}: expected `integrity` to be sha512, found `{hash}`");
        assert!(entry.get("resolved").is_none(), "{name}: set omit-lockfile-registry-resolved=true in .npmrc");
    }
}

/// Cargo's cache of the registry's index.
fn index() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))?;
    let indexes = std::fs::read_dir(home.join("registry/index")).ok()?;
    indexes.flatten().map(|entry| entry.path().join(".cache")).find(|path| path.is_dir())
}

/// The registry's entry of that version, as of cargo's last update.
fn index_entry(index: &Path, package: &Value) -> Option<Value> {
    let name = package["name"].as_str()?.to_lowercase();
    let folder = match name.len() {
        1 | 2 => name.len().to_string(),
        3 => format!("3/{}", &name[..1]),
        _ => format!("{}/{}", &name[..2], &name[2..4]),
    };
    let lines = std::fs::read(index.join(folder).join(&name)).ok()?;
    // JSON documents, each between zero bytes.
    let mut documents = lines.split(|byte| *byte == 0).filter_map(|text| serde_json::from_slice::<Value>(text).ok());
    documents.find(|line| line["vers"] == package["version"])
}

#[test]
fn no_crate_is_yanked() {
    // Without cargo's index cache (with vendored crates, say) nothing is known.
    let Some(index) = index() else { return };
    let entries: Vec<Value> = packages().iter().filter_map(|package| index_entry(&index, package)).collect();
    let yanked: Vec<String> = entries
        .iter()
        .filter(|line| line["yanked"] == true)
        .map(|line| format!("{} {}", line["name"], line["vers"]))
        .collect();
    assert!(yanked.is_empty(), "withdrawn: {}; cargo update", yanked.join(", "));
    for line in &entries {
        let checksum = line["cksum"].as_str().unwrap();
        assert_eq!(checksum.len(), 64, "{line}");
    }
}

#[test]
fn licence_expressions_allow_a_choice() {
    for good in ["MIT", "MIT/GPL-3.0", "GPL-2.0 OR Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "MPL-2.0"] {
        assert!(is_good(good), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND AGPL-3.0", "(MIT OR Zlib) AND AGPL-3.0", "unspecified", "", "SSPL-1.0 OR GPL-2.0"] {
        assert!(!is_good(bad), "{bad}");
    }
}
