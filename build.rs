//! Sets the runtime search path of `libduckdb.so` for the programs that are linked to it, how relocations are stored,
//! and the hash of the sources; rebuilds when the UI's files change.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Created even if the UI isn't built: cargo treats a missing folder as changed at every build.
    let built = Path::new("static/dist");
    if std::fs::create_dir_all(built).is_ok() {
        println!("cargo:rerun-if-changed=static/dist");
    }
    // Search order: beside the program (as in a package), the folder of a package, the build folder (program, tests).
    for place in ["$ORIGIN", "$ORIGIN/../lib/lakemill", "$ORIGIN/../duckdb"] {
        println!("cargo:rustc-link-arg-bin=lakemill-sql=-Wl,-rpath,{place}");
    }
    println!("cargo:rustc-link-arg-tests=-Wl,-rpath,$ORIGIN/../../duckdb");
    // Shrinks the programs by 4%; needs glibc 2.36 (Debian 12).
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    println!("cargo:rustc-env=LAKEMILL_SOURCES={:016x}", sources());
}

/// A hash of what the programs are built from: two programs of one build have the same.
fn sources() -> u64 {
    let mut files = Vec::new();
    for place in ["src", "bin", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={place}");
        list(Path::new(place), &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        let content = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file, content).hash(&mut hasher);
    }
    hasher.finish()
}

fn list(place: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(place) {
        Ok(entries) => entries.flatten().for_each(|entry| list(&entry.path(), files)),
        Err(_) => files.push(place.to_owned()),
    }
}
