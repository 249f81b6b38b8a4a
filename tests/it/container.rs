//! The container image's recipe, checked without a container engine: files that it copies exist and aren't ignored, and
//! the last stage has the libraries that the program links.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::children::Reaped as _;
use crate::support::program::call;

const RECIPE: &str = "scripts/package/Containerfile";
/// Shared libraries with their Debian package; `None`: part of every Debian image.
const SYSTEM: &[(&str, Option<&str>)] = &[
    ("libstdc++.so.6", Some("libstdc++6")),
    // A dependency of libstdc++6.
    ("libgcc_s.so.1", Some("libstdc++6")),
    ("libc.so.6", None),
    ("libm.so.6", None),
    ("libdl.so.2", None),
    ("libpthread.so.0", None),
    ("librt.so.1", None),
    ("ld-linux-x86-64.so.2", None),
    ("ld-linux-aarch64.so.1", None),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// `COPY [--from=STAGE] SOURCE… TARGET`.
#[derive(Debug)]
struct Copy {
    from: Option<String>,
    sources: Vec<String>,
    target: String,
}

/// `FROM BASE AS NAME` and its instructions.
#[derive(Debug, Default)]
struct Stage {
    name: String,
    copies: Vec<Copy>,
    /// `RUN` and other instructions, continued lines joined.
    others: Vec<String>,
}

fn stages(recipe: &str) -> Vec<Stage> {
    let bare: Vec<&str> = recipe.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = bare.join("\n").replace("\\\n", " ");
    let mut stages: Vec<Stage> = Vec::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "FROM" => {
                let name = words.iter().position(|word| *word == "AS").map_or("", |at| words[at + 1]);
                stages.push(Stage { name: name.to_owned(), ..Stage::default() });
            }
            "COPY" => {
                let from = words[1].strip_prefix("--from=").map(str::to_owned);
                let paths = &words[1 + usize::from(from.is_some())..];
                let (target, sources) = paths.split_last().unwrap();
                let sources = sources.iter().map(|source| (*source).to_owned()).collect();
                stages.last_mut().unwrap().copies.push(Copy { from, sources, target: (*target).to_owned() });
            }
            _ => stages.last_mut().unwrap().others.push(words.join(" ")),
        }
    }
    stages
}

/// Whether `.dockerignore` excludes a path; it uses names, paths, and `**/name` only.
fn is_ignored(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let text = read(".dockerignore");
    let mut patterns = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    patterns.any(|pattern| match pattern.strip_prefix("**/") {
        Some(name) => parts.contains(&name),
        None => Path::new(path).starts_with(pattern),
    })
}

#[test]
fn files_copied_by_the_recipe_exist_and_are_not_ignored() {
    let stages = stages(&read(RECIPE));
    assert_eq!(stages.len(), 3, "{stages:?}");
    let mut copied = 0;
    for (at, stage) in stages.iter().enumerate() {
        for copy in &stage.copies {
            match &copy.from {
                None => {
                    for source in &copy.sources {
                        copied += 1;
                        assert!(root().join(source).exists(), "{RECIPE} copies `{source}`, which isn't there");
                        assert!(!is_ignored(source), "{RECIPE} copies `{source}`, which .dockerignore leaves out");
                    }
                }
                Some(name) => {
                    let earlier = stages[..at].iter().find(|stage| stage.name == *name);
                    let earlier = earlier.unwrap_or_else(|| panic!("{RECIPE}: no stage before is called `{name}`"));
                    for source in &copy.sources {
                        copied += 1;
                        assert!(is_made_by(earlier, source), "{RECIPE}: nothing in `{name}` makes `{source}`");
                    }
                }
            }
        }
    }
    assert!(copied >= 10, "only {copied} paths were found");
}

/// Whether a stage copies, creates or builds that path, judged by its folder.
fn is_made_by(stage: &Stage, source: &str) -> bool {
    let path = source.trim_end_matches('/').trim_start_matches("/source/");
    let folder = path.split('/').find(|part| !part.is_empty()).unwrap_or_default();
    stage.copies.iter().any(|copy| copy.target.trim_matches('/') == folder)
        || stage
            .others
            .iter()
            .any(|line| line.contains(&format!("={}{folder}", if path.starts_with('/') { "/" } else { "" })))
}

#[test]
fn files_included_by_sources_are_in_the_build_context() {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut sources = Vec::new();
    walk(&root().join("src"), &mut sources);
    walk(&root().join("bin"), &mut sources);
    let mut taken = 0;
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for call in ["include_str!(\"", "include_bytes!(\""] {
            for rest in text.split(call).skip(1) {
                let path = source.parent().unwrap().join(rest.split('"').next().unwrap());
                let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let path = path.strip_prefix(root().canonicalize().unwrap()).unwrap().display().to_string();
                assert!(!is_ignored(&path), "{} takes in `{path}`, which .dockerignore leaves out", source.display());
                taken += 1;
            }
        }
    }
    assert!(taken > 5, "only {taken} files were found");
}

/// The strings of an ELF file's dynamic section with `tag`.
pub fn dynamic(file: &Path, tag: &str) -> Vec<String> {
    let said = Command::new("readelf").arg("-d").arg(file).env("LC_ALL", "C").output_reaped().unwrap();
    assert!(said.status.success(), "{said:?}");
    let text = String::from_utf8(said.stdout).unwrap();
    let lines = text.lines().filter(|line| line.contains(&format!("({tag})")));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_lakemill"))
}

fn sql_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_lakemill-sql"))
}

/// Where the loader finds the library for the program under test.
fn library() -> PathBuf {
    // As the loader looks for it; `ldd` doesn't know programs for other processors, which an emulator runs.
    let program = sql_program();
    let origin = program.parent().unwrap().display().to_string();
    let own = dynamic(&program, "RUNPATH").join(":").replace("$ORIGIN", &origin);
    let all = [std::env::var("LD_LIBRARY_PATH").unwrap_or_default(), own].join(":");
    let mut found = all.split(':').map(|folder| Path::new(folder).join("libduckdb.so"));
    found.find(|file| file.is_absolute() && file.exists()).unwrap_or_else(|| panic!("no libduckdb.so in {all}"))
}

#[test]
fn image_has_every_linked_library() {
    let stages = stages(&read(RECIPE));
    let last = stages.last().unwrap();
    let copied: BTreeMap<String, &str> = last
        .copies
        .iter()
        .flat_map(|copy| copy.sources.iter().map(|source| (source, copy.target.as_str())))
        .map(|(source, target)| (source.rsplit('/').next().unwrap().to_owned(), target))
        .collect();
    let installs = last.others.iter().find(|line| line.contains("apt-get install")).unwrap();
    let packages: BTreeSet<&str> = installs.split_whitespace().collect();
    // The library folder of a program in /usr/bin.
    assert_eq!(copied.get("lakemill"), Some(&"/usr/bin/lakemill"));
    assert_eq!(copied.get("lakemill-sql"), Some(&"/usr/lib/lakemill/lakemill-sql"));
    assert_eq!(copied.get("libduckdb.so"), Some(&"/usr/lib/lakemill/libduckdb.so"));
    let runpath = dynamic(&sql_program(), "RUNPATH").join(":");
    for wanted in ["$ORIGIN", "$ORIGIN/../lib/lakemill"] {
        assert!(runpath.split(':').any(|place| place == wanted), "{runpath}");
    }
    let mut needed = dynamic(&sql_program(), "NEEDED");
    assert!(needed.iter().any(|name| name == "libduckdb.so"), "{needed:?}");
    needed.extend(dynamic(&program(), "NEEDED"));
    needed.extend(dynamic(&library(), "NEEDED"));
    for name in needed {
        if copied.contains_key(&name) {
            continue;
        }
        let system = SYSTEM.iter().find(|(object, _)| *object == name);
        let (_, package) = system.unwrap_or_else(|| panic!("`{name}` is needed: in which package of the image is it?"));
        assert!(package.is_none_or(|package| packages.contains(package)), "`{name}` needs {package:?}: {installs}");
    }
}

/// The layouts of a package, an image and a manual copy.
#[test]
fn programs_and_library_run_from_any_folder_but_only_together() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("pipeline.json");
    let columns = r#"[{"name": "a", "type": "int64"}, {"name": "b", "type": "int64", "expr": "a + 1"}]"#;
    let mapping = format!(r#"{{"table": "t", "files": ["*.csv"], "columns": {columns}}}"#);
    std::fs::write(&config, format!(r#"{{"version": 1, "mappings": [{mapping}]}}"#)).unwrap();
    let (bin, package) = (home.path().join("bin"), home.path().join("lib/lakemill"));
    let lakemill = bin.join("lakemill");
    put(&program(), &lakemill);
    // The check of an expression needs both programs and the library.
    let check = || call(Command::new(&lakemill).arg("validate").arg(&config).env_clear());
    let fails = |part: &str| {
        let found = check();
        assert!(found.status == 1 && found.stdout.contains(part), "expected `{part}` in {found:?}");
    };
    let version = call(Command::new(&lakemill).arg("--version").env_clear()).ok().stdout;
    assert_eq!(version, format!("lakemill {}\n", env!("CARGO_PKG_VERSION")));
    for folder in [&bin, &package] {
        let sql = folder.join("lakemill-sql");
        fails("`lakemill-sql`, which runs SQL and expressions, is missing");
        put(&sql_program(), &sql);
        fails("error while loading shared libraries: libduckdb.so");
        // Beside the program, as in a package, or in a package's folder.
        for place in std::collections::BTreeSet::from([folder, &package]) {
            let library = place.join("libduckdb.so");
            put(&self::library(), &library);
            check().ok();
            let version = call(Command::new(&sql).arg("--version").env_clear()).ok().stdout;
            assert_eq!(version, format!("lakemill-sql {}\n", env!("CARGO_PKG_VERSION")));
            std::fs::remove_file(library).unwrap();
        }
        std::fs::remove_file(sql).unwrap();
    }
}

/// Creates a link to a file, or a copy on another file system.
pub fn put(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop)).unwrap();
}
