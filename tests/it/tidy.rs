//! Rules of the source text that the compiler doesn't check.
//!
//! Every rule reports all violations, as `file:line: problem`. Code under `#[cfg(test)]` may import anything, read the
//! environment and the clock; the other rules apply to it too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

mod cycles;
mod lexer;
mod names;

/// The layers and their ranks: a layer may import itself and lower ranks, never a sibling.
const RANKS: &[(&str, u8)] = &[
    ("domain", 0),
    ("runtime", 0),
    ("config", 1),
    ("ports", 1),
    ("sync", 1),
    ("system", 1),
    ("observability", 1),
    ("pipelines", 2),
    ("adapters", 3),
    ("engine", 3),
    ("sql", 3),
    ("http", 3),
    ("worker", 4),
    ("web", 4),
    // The code of child processes, in `bin/lakemill-sql`.
    ("child", 4),
    ("cli", 5),
    // Code for fuzz targets; not part of the product.
    ("fuzzing", 5),
    ("bin", 6),
];

/// Files that may hold `unsafe`, each with its proofs.
const UNSAFE_FILES: &[&str] = &[
    "src/engine/cells/avx2.rs",
    "src/engine/cells/neon.rs",
    "src/engine/cells/utf8.rs",
    "src/engine/read/avx2.rs",
    "src/engine/read/neon.rs",
    "src/engine/read/sha_ni.rs",
    "src/system/memory.rs",
];

/// Tests that start processes directly: the reaper, and a process that must outlive the reaper to unmount.
const PROCESS_STARTERS: &[&str] = &["tests/it/support/children.rs", "tests/it/support/disk.rs"];

/// Attackers that their own guard stops.
const ATTACKS: &str = "tests/it/attacks/";

const LINES_MAX: usize = 600;

/// Files over [`LINES_MAX`] lines, with the reason why they are not split.
const LONG_FILES: &[(&str, &str)] = &[];

/// One source file.
struct Source {
    /// Relative to the root of the package, with `/`.
    path: String,
    text: String,
    /// The text without comments and the contents of literals; same lines.
    code: String,
    /// `code` without what is under `#[cfg(test)]`; same lines.
    product: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = lexer::without_comments_and_literals(text);
        let product = lexer::without_tests(&code);
        Self { path: path.into(), text: text.into(), code, product }
    }

    /// The layer's name: the folder (or file) under `src`, `child`, or `bin`; none for `src/lib.rs` and for code outside of the
    /// product.
    fn layer(&self) -> Option<&str> {
        if self.path.starts_with(CHILD) {
            return Some("child");
        }
        if self.path.starts_with("bin/") {
            return Some("bin");
        }
        let rest = self.path.strip_prefix("src/")?;
        if rest == "lib.rs" { None } else { Some(rest.split('/').next()?.trim_end_matches(".rs")) }
    }

    /// The module depth of the file: 1 for `src/domain/mod.rs` and `src/domain.rs`, 2 for `src/domain/job.rs`.
    fn depth(&self) -> usize {
        let folders = self.path.matches('/').count();
        if self.path.ends_with("/mod.rs") { folders - 1 } else { folders }
    }

    fn violation_at(&self, offset: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{}: {what}", self.path, line_of(&self.text, offset))
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

fn rank(layer: &str) -> Option<u8> {
    RANKS.iter().find(|(name, _)| *name == layer).map(|(_, rank)| *rank)
}

fn upward_imports(file: &Source) -> Vec<String> {
    let Some(layer) = file.layer() else { return Vec::new() };
    let Some(own) = rank(layer) else {
        return vec![file.violation_at(0, format!("`{layer}` is not a layer that the ranks know"))];
    };
    let mut offences = Vec::new();
    for (offset, other) in lexer::crate_paths(&file.product, file.depth()) {
        if other == layer || (layer == "bin" && rank(&other).is_none()) {
            continue;
        }
        match rank(&other) {
            Some(theirs) if theirs < own => {}
            Some(theirs) => offences.push(file.violation_at(
                offset,
                format!("`{layer}` (rank {own}) imports `{other}` (rank {theirs}); imports go down only"),
            )),
            None => offences.push(file.violation_at(offset, format!("`{layer}` imports `{other}`, which has no rank"))),
        }
    }
    offences
}

/// Violations for each place in `code` where one of `words` occurs as a whole word.
fn forbid(file: &Source, code: &str, words: &[&str], why: &str) -> Vec<String> {
    let mut found: Vec<(usize, &str)> =
        words.iter().flat_map(|word| lexer::occurrences(code, word).map(move |at| (at, *word))).collect();
    found.sort_unstable();
    found.into_iter().map(|(at, word)| file.violation_at(at, format!("`{word}`: {why}"))).collect()
}

fn environment_reads(file: &Source) -> Vec<String> {
    if matches!(file.layer(), Some("config" | "bin")) {
        return Vec::new();
    }
    let words = ["env::var", "env::var_os", "env::vars", "env::vars_os", "env::set_var", "env::remove_var"];
    forbid(file, &file.product, &words, "only `config` and `bin` touch the environment")
}

fn clock_reads(file: &Source) -> Vec<String> {
    if file.path == "src/runtime/clock.rs" {
        return Vec::new();
    }
    let words = ["Utc::now", "Local::now", "SystemTime::now", "UNIX_EPOCH.elapsed"];
    forbid(file, &file.product, &words, "only `runtime/clock.rs` tells the time")
}

fn unlisted_unsafe(file: &Source) -> Vec<String> {
    if UNSAFE_FILES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    forbid(file, &file.code, &["unsafe"], "this file is not listed as one that may be unsafe")
}

/// The folder whose code runs in child processes.
const CHILD: &str = "bin/lakemill-sql/child/";

/// Includes unit tests: the library's test binary isn't linked to DuckDB either.
fn duckdb_outside_children(file: &Source) -> Vec<String> {
    if file.path.starts_with(CHILD) {
        return Vec::new();
    }
    let why = "only `lakemill-sql` is linked to DuckDB, by its code under `child`";
    forbid(file, &file.code, &["duckdb::"], why)
}

fn allowed_lints(file: &Source) -> Vec<String> {
    let squeezed = ["#[allow(", "#![allow("];
    let mut offences = forbid(file, &file.code, &squeezed, "write `#[expect(…, reason = \"…\")]`");
    for (at, _) in file.code.match_indices("cfg_attr(") {
        let attribute = &file.code[at..file.code[at..].find(']').map_or(file.code.len(), |end| at + end)];
        if attribute.contains("allow(") {
            offences.push(file.violation_at(at, "`allow` in `cfg_attr`: write `expect` with a reason"));
        }
    }
    offences
}

fn todo_macros(file: &Source) -> Vec<String> {
    forbid(file, &file.code, &["todo!", "dbg!", "unimplemented!"], "must not be left in the code")
}

fn prints_outside_cli(file: &Source) -> Vec<String> {
    if matches!(file.layer(), None | Some("cli" | "bin")) {
        return Vec::new();
    }
    forbid(file, &file.product, &["println!", "print!", "eprintln!", "eprint!"], "only `cli` prints")
}

fn machine_paths(file: &Source) -> Vec<String> {
    // Written in pieces, so that this file has no violation.
    let places = [concat!("/ro", "ot"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];
    let mut offences = Vec::new();
    for place in places {
        for (at, _) in file.text.match_indices(place) {
            let before = file.text[..at].chars().next_back();
            let after = file.text[at + place.len()..].chars().next();
            let within_a_name = before.is_some_and(|c| c.is_alphanumeric() || "_-.*}>$)".contains(c))
                || (!place.ends_with('/') && after.is_some_and(|c| c.is_alphanumeric() || c == '_'));
            if !within_a_name {
                offences.push(file.violation_at(at, format!("`{place}` is a place on one machine")));
            }
        }
    }
    offences
}

fn long_files(file: &Source) -> Vec<String> {
    let lines = file.text.lines().count();
    let listed = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    match (lines > LINES_MAX, listed) {
        (true, false) => {
            vec![format!("{}:{lines}: {lines} lines; split it, or list it with a reason", file.path)]
        }
        (false, true) => vec![format!("{}:1: is listed as long, and has {lines} lines", file.path)],
        (true, true) | (false, false) => Vec::new(),
    }
}

fn unreaped_processes(file: &Source) -> Vec<String> {
    if PROCESS_STARTERS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let calls =
        [".spawn().", ".spawn()?", ".spawn();", ".spawn() ", ".output().unwrap", ".output().expect", ".output() else"];
    let statuses = [".status().unwrap", ".status().is_ok_and", ".status() else"];
    // A call that spans lines still counts.
    let squeezed = |at: usize| file.code[at..].split_whitespace().collect::<String>();
    let found = [".spawn()", ".output()", ".status()"].into_iter().flat_map(|call| file.code.match_indices(call));
    found
        .filter(|(at, _)| {
            let rest: String = squeezed(*at).chars().take(40).collect();
            let line = &file.code[*at..].lines().next().unwrap_or_default();
            calls.iter().chain(&statuses).any(|call| rest.starts_with(call) || line.starts_with(call))
        })
        .map(|(at, call)| {
            file.violation_at(at, format!("`{call}`: use `spawn_reaped` or `output_reaped` of `support::children`"))
        })
        .collect()
}

/// The loops of a file, each from its keyword to its closing brace.
fn loops(code: &str) -> impl Iterator<Item = (usize, &str)> {
    ["loop", "while"].into_iter().flat_map(move |word| lexer::occurrences(code, word)).filter_map(|at| {
        let open = at + code[at..].find('{')?;
        let mut depth = 0_usize;
        let end = code[open..].bytes().position(|byte| {
            depth = if byte == b'{' { depth + 1 } else { depth - usize::from(byte == b'}') };
            depth == 0
        })?;
        Some((at, &code[at..=open + end]))
    })
}

/// A loop that polls: by sleeping, or by checking a flag that others set.
fn unbounded_loops(file: &Source) -> Vec<String> {
    let waits = |text: &str| {
        let head = text.split('{').next().unwrap_or_default();
        ["sleep(", "yield_now("].iter().any(|call| text.contains(call)) || head.contains(".load(")
    };
    // A read or a write fails once the other end is closed.
    let ends = |text: &str| {
        ["Instant::now()", "elapsed()", ".is_on()", ".goes_on()", "read(", "write_all("]
            .iter()
            .any(|look| text.contains(look))
    };
    if file.path.starts_with(ATTACKS) {
        return Vec::new();
    }
    let endless = loops(&file.code).filter(|(_, text)| waits(text) && !ends(text));
    let why = "a loop that waits without a deadline: compare `Instant::now()`, or use `support::concurrent` for one that \
               runs during an assertion";
    endless.map(|(at, _)| file.violation_at(at, why)).collect()
}

/// Files that no `mod` line declares, so that they are not compiled.
fn files_without_a_module(files: &[Source]) -> Vec<String> {
    let declared: std::collections::BTreeSet<String> = files
        .iter()
        .flat_map(|file| {
            let of = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].iter().find_map(|end| file.path.strip_suffix(end));
            let folder = of.unwrap_or_default();
            let names = file.code.lines().filter_map(|line| line.trim().strip_suffix(';')?.rsplit_once("mod "));
            names.flat_map(move |(_, name)| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")])
        })
        .collect();
    let roots = ["src/lib.rs", "bin/lakemill.rs", "bin/lakemill-sql/main.rs", "tests/it/main.rs"];
    let lost = files.iter().filter(|file| !roots.contains(&&*file.path) && !declared.contains(&file.path));
    lost.map(|file| file.violation_at(0, "no `mod` line declares this file; declare or delete it")).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files under `folder` with one of these extensions (`""`: none), sorted.
fn files_under(folder: &str, extensions: &[&str]) -> Vec<Source> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for entry in entries.map(|e| e.expect("the folder can be read").path()) {
            let name = entry.file_name().unwrap_or_default();
            if entry.is_dir() && name != "node_modules" && name != "__pycache__" {
                walk(&entry, out);
            } else if entry.is_file() {
                out.push(entry);
            }
        }
    }
    let mut paths = Vec::new();
    walk(&root().join(folder), &mut paths);
    paths.sort();
    let wanted = |p: &PathBuf| extensions.contains(&p.extension().and_then(|e| e.to_str()).unwrap_or(""));
    let read = |p: PathBuf| {
        let relative = p.strip_prefix(root()).expect("it lies under the root").to_string_lossy().replace('\\', "/");
        Source::new(&relative, &std::fs::read_to_string(&p).expect("a source file is UTF-8"))
    };
    paths.into_iter().filter(wanted).map(read).collect()
}

fn product_files() -> Vec<Source> {
    let files: Vec<Source> = ["src", "bin"].iter().flat_map(|folder| files_under(folder, &["rs"])).collect();
    assert!(files.len() > 10, "the sources were found");
    files
}

fn assert_none(files: &[Source], rule: fn(&Source) -> Vec<String>) {
    let offences: Vec<String> = files.iter().flat_map(rule).collect();
    let mut text = String::new();
    for violation_at in &offences {
        let _ = writeln!(text, "  {violation_at}");
    }
    assert!(offences.is_empty(), "{} offences:\n{text}", offences.len());
}

#[test]
fn imports_go_down_only() {
    assert_none(&product_files(), upward_imports);
}

#[test]
fn layers_have_no_import_cycles() {
    for root in ["src/", "bin/lakemill-sql/"] {
        let files = files_under(root, &["rs"]);
        let paths: Vec<(&str, &str)> =
            files.iter().filter_map(|file| Some((file.path.strip_prefix(root)?, file.product.as_str()))).collect();
        let cycles: Vec<String> = cycles::cycles(&paths).iter().map(|members| members.join(", ")).collect();
        assert!(cycles.is_empty(), "{} import cycles:\n  {}", cycles.len(), cycles.join("\n  "));
    }
}

#[test]
fn source_files_are_modules() {
    for folder in ["src", "bin", "tests/it"] {
        let offences = files_without_a_module(&files_under(folder, &["rs"]));
        assert!(offences.is_empty(), "{}", offences.join("\n"));
    }
}

#[test]
fn only_config_and_bin_read_the_environment() {
    assert_none(&product_files(), environment_reads);
}

#[test]
fn only_child_processes_open_duckdb() {
    assert_none(&product_files(), duckdb_outside_children);
}

#[test]
fn only_clocks_read_the_time() {
    assert_none(&product_files(), clock_reads);
}

#[test]
fn unsafe_code_is_in_listed_files() {
    let mut files = product_files();
    files.extend(files_under("tests", &["rs"]));
    assert_none(&files, unlisted_unsafe);
}

#[test]
fn processes_of_tests_end_with_them() {
    assert_none(&files_under("tests/it", &["rs"]), unreaped_processes);
}

#[test]
fn polling_loops_of_tests_have_a_deadline() {
    assert_none(&files_under("tests/it", &["rs"]), unbounded_loops);
}

#[test]
fn lints_are_expected_not_allowed() {
    let mut files = product_files();
    files.extend(files_under("tests", &["rs"]));
    assert_none(&files, allowed_lints);
}

#[test]
fn no_todo_macro_is_left() {
    let mut files = product_files();
    files.extend(files_under("tests", &["rs"]));
    assert_none(&files, todo_macros);
}

#[test]
fn only_the_cli_prints() {
    assert_none(&product_files(), prints_outside_cli);
}

#[test]
fn no_file_contains_a_machine_path() {
    let mut files = product_files();
    for folder in ["tests", "scripts", ".ci", "testdata", "docs"] {
        files.extend(files_under(folder, &["rs", "py", "sh", "md", "json", "txt", "toml", ""]));
    }
    for name in ["README.md", "ARCHITECTURE.md", "Cargo.toml", "build.rs"] {
        let text = std::fs::read_to_string(root().join(name)).expect("the file is there");
        files.push(Source::new(name, &text));
    }
    assert_none(&files, machine_paths);
}

#[test]
fn source_files_stay_short() {
    let files: Vec<Source> = product_files();
    for (path, reason) in LONG_FILES {
        assert!(!reason.is_empty() && files.iter().any(|f| f.path == *path), "`{path}` is there, with a reason");
    }
    assert_none(&files, long_files);
}

mod rules {
    use super::*;

    fn check(rule: fn(&Source) -> Vec<String>, path: &str, text: &str, expected_lines: &[usize]) {
        let offences = rule(&Source::new(path, text));
        let lines: Vec<usize> =
            offences.iter().map(|o| o.split(':').nth(1).and_then(|l| l.parse().ok()).expect("file:line")).collect();
        assert_eq!(lines, expected_lines, "{path}: {text:?} gave {offences:?}");
    }

    #[test]
    fn upward_and_sibling_imports_are_found() {
        let r = upward_imports;
        check(r, "src/domain/job.rs", "use crate::domain::name;\nuse crate::runtime::Clock;\n", &[2]);
        check(r, "src/engine/mod.rs", "use crate::{domain::name, ports, adapters::fs::Store};\n", &[1]);
        check(r, "src/engine/mod.rs", "use crate::{\n    domain::{a, b},\n    sql::X,\n    cli,\n};\n", &[3, 4]);
        check(r, "src/sql/mod.rs", "fn f() { crate::engine::run(); }\n", &[1]);
        check(r, "src/sql/a/b.rs", "use super::super::super::engine;\nuse super::super::c;\n", &[1]);
        check(r, "src/sql/mod.rs", "use super::engine;\nuse super::domain;\n", &[1]);
        check(r, "src/sql/mod.rs", "use super::{domain, engine};\n", &[1]);
        check(r, "src/web/mod.rs", "use crate::worker::claim;\nuse crate::http::Request;\n", &[1]);
        check(r, "src/cli/run.rs", "use crate::{engine, adapters, sql, config, ports, domain};\n", &[]);
        check(r, "bin/lakemill.rs", "fn main() { lakemill::cli::main() }\n", &[]);
        check(
            r,
            "bin/lakemill-sql/child/a.rs",
            "use crate::child::b;\nuse lakemill::web::c;\nuse lakemill::sql;\n",
            &[2],
        );
        check(r, "src/cli/mod.rs", "use crate::misc;\n", &[1]);
        check(r, "src/misc/mod.rs", "", &[1]);
    }

    #[test]
    fn files_that_are_not_compiled_are_found() {
        let sources = [
            ("src/lib.rs", "pub mod a;\n#[cfg(test)]\nmod b;\n"),
            ("src/a/mod.rs", "pub(super) mod c;\n"),
            ("src/a/c.rs", "mod d;\n"),
            ("src/a/c/d.rs", ""),
            ("src/b.rs", "// mod lost;\n"),
            ("src/a/lost.rs", ""),
            ("src/lost.rs", ""),
        ];
        let offences = files_without_a_module(&sources.map(|(path, text)| Source::new(path, text)));
        assert!(
            offences.len() == 2 && offences.iter().all(|violation_at| violation_at.contains("lost.rs")),
            "{offences:?}"
        );
    }

    #[test]
    fn cycles_are_found_within_a_layer() {
        let cycles = |files: &[(&str, &str)]| cycles::cycles(files);
        let parent = ("web/mod.rs", "mod lake;\npub struct Web;\nfn f() { lake::list() }\n");
        let child = ("web/lake.rs", "use super::Web;\npub fn list() {}\n");
        assert_eq!(cycles(&[parent, child]), [["web", "web::lake"]]);
        let facade = ("web/mod.rs", "mod lake;\nmod state;\npub use state::Web;\nfn f() { lake::list() }\n");
        let state = ("web/state.rs", "pub struct Web;\n");
        assert!(cycles(&[facade, state, child]).is_empty(), "a facade is not a dependency");
        let state = ("web/state.rs", "use crate::web::{lake::{list, other as o}};\npub struct Web;\n");
        assert_eq!(cycles(&[facade, state, child]), [["web::lake", "web::state"]]);
        let other = ("sql/mod.rs", "use crate::web::Web;\n");
        assert!(
            cycles(&[("web/mod.rs", "use crate::sql::X;\npub struct Web;\n"), other]).is_empty(),
            "layers have ranks"
        );
    }

    #[test]
    fn comments_strings_and_tests_import_nothing() {
        let r = upward_imports;
        check(r, "src/domain/a.rs", "//! See [`crate::engine`].\n/* crate::cli /* nested */ crate::cli */\n", &[]);
        check(r, "src/domain/a.rs", "const A: &str = \"crate::cli\"; const B: &str = r#\"crate::\"cli\"#;\n", &[]);
        check(r, "src/domain/a.rs", "const A: char = '\"'; use crate::cli; const B: char = '\"';\n", &[1]);
        check(r, "src/domain/a.rs", "fn f<'a>(x: &'a str) {}\nuse crate::cli;\n", &[2]);
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::cli;\n    fn f() { {} }\n}\nuse crate::cli;\n";
        check(r, "src/domain/a.rs", tests, &[6]);
        check(r, "src/domain/a.rs", "#[cfg(test)]\nuse crate::cli;\nuse crate::sql;\n", &[3]);
        check(r, "src/domain/a.rs", "#[cfg(not(test))]\nuse crate::cli;\n", &[2]);
    }

    #[test]
    fn reading_the_environment_is_found_outside_config() {
        let r = environment_reads;
        check(r, "src/engine/a.rs", "fn f() {\n    std::env::var(\"X\");\n    std::env::var_os(\"X\");\n}\n", &[2, 3]);
        check(r, "src/engine/a.rs", "use std::env;\nfn f() { env :: vars(); }\n", &[2]);
        check(r, "src/config/a.rs", "fn f() { std::env::var(\"X\"); }\n", &[]);
        check(r, "src/engine/a.rs", "const V: &str = env!(\"CARGO_PKG_VERSION\");\n", &[]);
    }

    #[test]
    fn clock_reads_outside_of_clocks_are_found() {
        let r = clock_reads;
        check(r, "src/engine/a.rs", "fn f() { chrono::Utc::now(); }\nfn g() { SystemTime::now(); }\n", &[1, 2]);
        check(r, "src/runtime/clock.rs", "impl Clock for System { fn now() { Utc::now() } }\n", &[]);
        check(r, "src/adapters/fs/a.rs", "fn f() { Utc::now(); }\n", &[1]);
        check(
            r,
            "src/engine/a.rs",
            "fn f() { Instant::now(); }\n#[cfg(test)]\nmod tests { fn f() { Utc::now(); } }\n",
            &[],
        );
    }

    #[test]
    fn duckdb_is_found_outside_children() {
        let r = duckdb_outside_children;
        check(r, "src/engine/a.rs", "use duckdb::Connection;\n", &[1]);
        check(r, "bin/lakemill.rs", "use duckdb::Connection;\n", &[1]);
        check(r, "bin/lakemill-sql/child/a.rs", "use duckdb::Connection;\n", &[]);
        check(r, "src/sql/a.rs", "#[cfg(test)]\nmod tests { use duckdb::Connection; }\n", &[2]);
    }

    #[test]
    fn unsafe_is_found_as_a_whole_word() {
        let r = unlisted_unsafe;
        check(r, "src/a.rs", "#![forbid(unsafe_op_in_unsafe_fn)]\n// unsafe\nfn f() { unsafe { g() } }\n", &[3]);
        check(r, "src/a.rs", "#[cfg(test)]\nmod tests { unsafe fn f() {} }\n", &[2]);
        check(r, UNSAFE_FILES[0], "unsafe fn f() {}\n", &[]);
    }

    #[test]
    fn processes_that_may_outlive_a_test_are_found() {
        let r = unreaped_processes;
        let text = "fn f() {\n    c.spawn().unwrap();\n    c\n        .output()\n        .unwrap();\n    c.spawn_reaped();\n}\n";
        check(r, "tests/it/a.rs", text, &[2, 4]);
        check(
            r,
            "tests/it/a.rs",
            "fn f() {\n    scope.spawn(|| 1);\n    program.output().exists();\n    e.status() < 5;\n}\n",
            &[],
        );
        check(r, "tests/it/a.rs", "fn f() {\n    let Ok(x) = c.status() else { return };\n}\n", &[2]);
        check(r, PROCESS_STARTERS[0], "fn f() { c.spawn().unwrap() }\n", &[]);
    }

    #[test]
    fn loops_without_a_deadline_are_found() {
        let r = unbounded_loops;
        check(r, "tests/it/a.rs", "fn f() {\n    loop {\n        if x { sleep(y); }\n    }\n}\n", &[2]);
        check(r, "tests/it/a.rs", "fn f() {\n    while !stop.load(O) {\n        g();\n    }\n}\n", &[2]);
        check(r, "tests/it/a.rs", "fn f() { loop { assert!(Instant::now() < until); sleep(y); } }\n", &[]);
        check(r, "tests/it/a.rs", "fn f() { while body.is_on() { sleep(y); } }\nfn g() { loop { h()?; } }\n", &[]);
    }

    #[test]
    fn allowed_lints_are_found() {
        let r = allowed_lints;
        check(r, "src/a.rs", "#![allow(x)]\n#[ allow (y)]\n#[expect(z, reason = \"w\")]\n", &[1, 2]);
        check(r, "src/a.rs", "#[cfg_attr(test, allow(x))]\nfn allow() {}\n", &[1]);
    }

    #[test]
    fn leftovers_and_prints_are_found() {
        check(todo_macros, "src/a.rs", "fn f() { todo!() }\nfn g() { dbg!(1); }\n", &[1, 2]);
        check(todo_macros, "src/a.rs", "fn todo() { my_todo!() }\n", &[]);
        check(prints_outside_cli, "src/engine/a.rs", "fn f() { println!(); }\nfn g() { eprint!(\"\"); }\n", &[1, 2]);
        check(prints_outside_cli, "src/cli/a.rs", "fn f() { println!(); }\n", &[]);
    }

    #[test]
    fn machine_paths_are_found_in_comments() {
        let r = machine_paths;
        check(r, "src/a.rs", concat!("// see /ro", "ot/x\nlet a = \"/ho", "me/me\";\n"), &[1, 2]);
        check(r, "src/a.rs", concat!("// see tests/ro", "ot, a/wo", "rk/b and $HOME/ho", "me/x\n"), &[]);
    }

    #[test]
    fn long_files_are_found() {
        check(long_files, "src/a.rs", &"\n".repeat(600), &[]);
        check(long_files, "src/a.rs", &"\n".repeat(601), &[601]);
    }
}
