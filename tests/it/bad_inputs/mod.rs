//! Outcomes of invalid input: rows, rejects with their position, or an error that names the position and the remedy.
//! The whole program runs on files, and the tests read its output.

mod calls;
mod cells;
mod files;
mod headers;
mod limits;
mod partitions;
mod records;
mod rules;
mod text;
mod written;

use serde_json::{Value, json};

use crate::support::program::{CommandOutput, Program, mapping};

/// Rows and rejects (as `Rejected::summary`) of `csv` with the config changed by `change`.
#[track_caller]
fn check(csv: impl AsRef<[u8]>, change: Value, rows: &[&str], rejects: &[&str]) {
    check_files(&[("x.csv", csv.as_ref())], change, rows, rejects);
}

#[track_caller]
fn check_files(sources: &[(&str, &[u8])], change: Value, rows: &[&str], rejects: &[&str]) {
    let program = Program::of(&change);
    sources.iter().for_each(|(name, bytes)| {
        program.put(name, bytes);
    });
    let ran = program.run(&[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(program.rows("t"), rows, "rows");
    let summaries: Vec<String> = program.rejected("t").iter().map(|r| r.summary()).collect();
    assert_eq!(summaries, rejects, "rejects");
}

/// A run on `csv` with the config changed by `change` fails; the error contains each of `parts`.
#[track_caller]
fn check_fails(csv: impl AsRef<[u8]>, change: Value, parts: &[&str]) -> CommandOutput {
    check_files_fail(&[("x.csv", csv.as_ref())], change, parts)
}

/// Like [`check_fails`]. Published files stay, although another table has changes to publish.
#[track_caller]
fn check_files_fail(sources: &[(&str, &[u8])], change: Value, parts: &[&str]) -> CommandOutput {
    let other = mapping(&json!({ "table": "other", "files": ["other/*.csv"] }));
    let program = Program::new(std::slice::from_ref(&other));
    program.put("other/1.csv", "a,b\nx,1\n").run(&[]).ok();
    let before = program.published();
    program.configure(&[other, mapping(&change)]);
    program.put("other/1.csv", "a,b\ny,2\n");
    sources.iter().for_each(|(name, bytes)| {
        program.put(name, bytes);
    });
    let ran = program.run(&[]).exits_with(1, parts).exits_with(1, &["the run failed: ", "nothing was published"]);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(program.published() == before, "a failed run touched what was published");
    ran
}
