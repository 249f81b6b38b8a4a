//! Snapshots of the complete output of `lakemill run` and its help.

use std::path::Path;

use serde_json::json;

use crate::support::program::{Program, call, lakemill, mapping};

/// Replaces what differs between runs (seconds, sizes, ids) with `#`, and collapses blanks.
fn steady(text: &str, home: &Path) -> String {
    let text = text.replace(&home.display().to_string(), "HOME");
    let word = |word: &str| {
        let bare = word.trim_start_matches('(');
        if bare.parse::<f64>().is_ok() && bare.contains('.') {
            return word.replace(bare, "#");
        }
        match word.split_once("jobs/").zip(word.split_once(".rejected")) {
            Some(((before, _), (_, after))) => format!("{before}jobs/#.rejected{after}"),
            None => word.to_owned(),
        }
    };
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(word).collect();
        for at in 1..words.len() {
            if matches!(words[at].as_str(), "B" | "KiB" | "MiB") {
                words[at - 1] = "#".into();
                words[at] = "B".into();
            }
        }
        words.join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

#[track_caller]
fn assert_output(program: &Program, more: &[&str], expected: &str) {
    let ran = program.run(more).ok();
    assert_eq!(steady(&ran.stdout, program.home()), expected);
    assert_eq!(ran.stderr, "");
}

fn shop() -> Program {
    let orders = mapping(&json!({ "table": "orders", "files": ["orders/*.csv"], "partition_by": ["a"] }));
    let items = mapping(&json!({ "table": "items", "files": ["items/*.csv"], "where": "b > 0",
        "checks": [{ "name": "small", "assert": "b < 10", "on_fail": "warn" }] }));
    let program = Program::new(&[orders, items]);
    program.put("orders/1.csv", "a,b\nx,1\ny,2\nx,bad\n").put("orders/2.csv", "a,b\nz,1\n");
    program.put("items/1.csv", "a,b\np,1\nq,0\nr,11\n");
    program
}

const HEADER: &str = "table rows rejected filtered files size written unchanged read skipped\n";

#[test]
fn summary_lists_sources_and_tables() {
    let program = shop();
    let tables = "items 2 0 1 1 # B 1 0 1 0\norders 3 1 0 3 # B 3 0 2 0\n";
    assert_output(
        &program,
        &["--dry-run"],
        &format!(
            "{HEADER}{tables}\
warning: table `items`: check `small` failed on 1 row
table `orders`: 1 row would be in _rejected_rows/table=orders, with the reason
table `items`: would write 1 partition
(the whole table)
table `orders`: would write 3 partitions
a=x
a=y
a=z
dry run: nothing was written (# s)
"
        ),
    );
    assert_output(
        &program,
        &[],
        &format!(
            "{HEADER}{tables}\
warning: table `items`: check `small` failed on 1 row
table `orders`: 1 row is in _rejected_rows/table=orders, with the reason
3 files read, 4 partitions written in # s
"
        ),
    );
    assert_output(
        &program,
        &[],
        &format!(
            "{HEADER}\
items 2 0 1 1 # B 0 1 0 1
orders 3 1 0 3 # B 0 3 0 2
table `orders`: 1 row is in _rejected_rows/table=orders, with the reason
nothing changed: 3 files are unchanged (# s)
"
        ),
    );
}

#[test]
fn summary_of_a_second_run_lists_changes() {
    let program = shop();
    program.run(&[]).ok();
    program.put("orders/2.csv", "a,b\nz,1\nw,1\n");
    std::fs::remove_file(program.source("orders/1.csv")).unwrap();
    let tables = "items 2 0 1 1 # B 0 1 0 1\norders 2 0 0 2 # B 1 1 1 0\n";
    assert_output(
        &program,
        &["--dry-run"],
        &format!(
            "{HEADER}{tables}\
table `orders`: would write 1 partition
a=w
table `orders`: would delete 2 partitions
a=x
a=y
dry run: nothing was written (# s)
"
        ),
    );
    assert_output(
        &program,
        &[],
        &format!(
            "{HEADER}{tables}\
table `orders`: 2 partitions deleted, since they have no more rows
1 file read, 1 partition written in # s
"
        ),
    );
    let tables = "items 2 0 1 1 # B 0 1 1 0\norders 2 0 0 2 # B 0 2 1 0\n";
    let small = "warning: table `items`: check `small` failed on 1 row\n";
    assert_output(
        &program,
        &["--clean", "--dry-run"],
        &format!("{HEADER}{tables}{small}dry run: nothing was written (# s)\n"),
    );
    assert_output(
        &program,
        &["--clean"],
        &format!("{HEADER}{tables}{small}2 files read, 0 partitions written in # s\n"),
    );
}

#[test]
fn failed_run_reports_place_and_advice() {
    let program = shop();
    let strict =
        json!({ "table": "orders", "files": ["orders/*.csv"], "rejects": { "max_rows": 0, "max_ratio": 0.0 } });
    program.configure(&[mapping(&strict)]);
    let ran = program.run(&[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_eq!(
        steady(&ran.stderr, program.home()),
        "\
the run failed: table `orders`: 1 of 4 rows rejected, but none may be (too_many_rejects)
`orders/1.csv` line 4: column `b`: expected int64, found `bad` (wrong_type)
correct the files or the mapping, or raise `rejects`
rejected rows: HOME/out/_lakemill/jobs/#.rejected.parquet
nothing was published: the tables are unchanged
"
    );
}

const HELP: &str = "\
Turns raw CSV files into typed, partitioned Parquet tables

Usage: lakemill <COMMAND>

Commands:
  run            Convert a folder or bucket of CSV files to Parquet tables, without a service
  up             Start all services in one process, with store and queue in one folder
  worker         Start a worker, configured by its environment
  web            Start a web service, configured by its environment
  validate       Check a pipeline.json or a dashboard; reports all problems with line and column
  infer          Propose a config for CSVs and print it, with the evidence on stderr
  enqueue        Enqueue a run of a pipeline and print the job's id
  jobs           List the jobs of a pipeline, or of all, newest first
  cancel         Cancel a queued or running job
  pause          Pause the runs of a pipeline or of all, or show what is paused
  resume         End a pause
  verify         Compare the files of a pipeline's tables with their manifests
  backup         Back up pipelines to a folder or a bucket, or list or check backups
  restore        Restore pipelines from a backup
  notify         Show the notifications that were sent to people, newest first, or send a test
  webhook        Manage the object store's notifications of new files
  doctor         Check all dependencies of the services, and suggest fixes
  health         Check that a service responds, for health checks
  hash-password  Print the hash of a password, for SVC_ADMIN_PASSWORD_HASH
  completions    Print shell completions
  man            Print the manual page, or write the pages of all commands
  help           Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help
  -V, --version  Print version

Exit status: 0 success; 1 the command failed; 2 invalid arguments; 75 a signal stopped it before it
was done; 78 invalid environment.
See `lakemill COMMAND --help` for details.
";

const HELP_RUN: &str = "\
Convert a folder or bucket of CSV files to Parquet tables, without a service

Usage: lakemill run [OPTIONS] --input <PLACE> --output <PLACE> <FILE>

Arguments:
  <FILE>  The config, a pipeline.json

Options:
      --input <PLACE>   What the config's `files` globs are relative to; only read
      --output <PLACE>  Place of tables (PLACE/<table>/…), rejected rows (PLACE/_rejected_rows/…)
                        and manifests (PLACE/_lakemill/…)
      --dry-run         Convert and check everything, report what would change, write nothing
      --clean           Rebuild all tables and delete partitions without sources
      --prefix <PATH>   Read only new or changed files whose path starts with this
      --threads <N>     Threads that parse and encode [default: one per core]
      --memory <MIB>    Memory of the run in MiB; the rest spills to scratch [default: 512]
      --json            Print the result as JSON, as in a job's record
  -q, --quiet           No progress bar
  -h, --help            Print help

PLACE is a folder, or s3://bucket/prefix, which needs the environment of the object store (OBJ_…).
A second run reads only new and changed files. PLACE/_rejected_rows has the rejected rows and why.
Exit status: 0 success; 1 the run failed; 2 invalid arguments; 75 a signal stopped it; 78 invalid
environment.

Example: lakemill run shop.json --input s3://my-lake/shop --output warehouse
";

const HELP_VALIDATE: &str = "\
Check a pipeline.json or a dashboard; reports all problems with line and column

Usage: lakemill validate <FILE>

Arguments:
  <FILE>  The file to check; `-` reads standard input

Options:
  -h, --help  Print help
";

#[test]
fn help_lists_commands_and_options() {
    for (words, expected) in
        [(&["--help"][..], HELP), (&["run", "--help"], HELP_RUN), (&["validate", "--help"], HELP_VALIDATE)]
    {
        let ran = call(lakemill().args(words)).ok();
        assert_eq!(ran.stdout, expected);
    }
}

#[test]
fn help_of_every_command_lists_exit_statuses() {
    for words in [
        "run",
        "up",
        "worker",
        "web",
        "infer",
        "enqueue",
        "jobs",
        "pause",
        "resume",
        "verify",
        "backup",
        "restore",
        "notify",
        "webhook",
        "doctor",
        "hash-password",
    ] {
        let ran = call(lakemill().args([words, "--help"])).ok();
        assert!(ran.stdout.contains("\nExit status: 0 "), "{}", ran.stdout);
    }
}

#[test]
fn missing_command_prints_the_help() {
    let ran = call(&mut lakemill());
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("Usage: lakemill <COMMAND>") && ran.stderr.contains("validate"), "{}", ran.stderr);
}

#[test]
fn table_without_rows_says_why() {
    let program = Program::of(&json!({ "where": "b > 5" }));
    program.put("1.csv", "a,b\n");
    let said = |program: &Program| program.run(&[]).ok().stdout;
    assert!(said(&program).contains("table `t`: no row was written: the files read have no rows\n"));
    program.put("2.csv", "a,b\nx,1\ny,2\n");
    assert!(said(&program).contains("no row was written: `where` is false or null for all 2 rows\n"));
    let program = Program::of(&json!({ "where": "b > 5" }));
    program.put("1.csv", "a,b\nx,no\n");
    assert!(said(&program).contains("no row was written: the only row was rejected\n"));
    program.put("1.csv", "a,b\nx,no\ny,1\n");
    let text = said(&program);
    assert!(text.contains("no row was written: `where` is false or null for 1 row, and 1 rejected\n"), "{text}");
    program.put("1.csv", "a,b\nx,7\n");
    assert!(!said(&program).contains("no row was written"));
}
