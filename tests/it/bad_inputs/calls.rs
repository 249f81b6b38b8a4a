//! Invalid command lines, and runs that must not write.

use serde_json::json;

use lakemill::adapters::fs::OutputLock;

use crate::support::program::{Program, call, files, lakemill, mapping};

const TEXT: &str = "a,b\nx,1\n";

fn ready() -> Program {
    let program = Program::of(&json!({}));
    program.put("x.csv", TEXT);
    program
}

#[test]
fn invalid_arguments_exit_with_status_2() {
    for (words, part) in [
        (&["run"][..], "<FILE>"),
        (&["run", "x.json", "--input", "x"], "--output"),
        (&["valdate"], "similar"),
        (&["rnu"], "unrecognized subcommand"),
        (&["run", "x", "--input", "x", "--output", "y", "--threads", "0"], "--threads"),
        (&["run", "x", "--input", "x", "--output", "y", "--memory", "1"], "64"),
        (&["run", "x", "--input", "x", "--output", "y", "--dryrun"], "--dry-run"),
        (&["validate"], "<FILE>"),
    ] {
        call(lakemill().args(words)).exits_with(2, &[part]);
    }
}

#[test]
fn missing_config_or_folder_is_reported() {
    let program = ready();
    let config = program.config();
    std::fs::remove_file(&config).unwrap();
    program.run(&[]).exits_with(1, &[&format!("`{}`", config.display()), "No such file"]);
    std::fs::create_dir(&config).unwrap();
    program.run(&[]).exits_with(1, &[&format!("`{}`", config.display()), "irectory"]);
    assert!(!program.output().exists());
}

#[test]
fn invalid_config_reports_all_problems_and_writes_nothing() {
    let program = ready();
    program.configure(&[mapping(&json!({ "tabel": "x", "partition_by": ["c"], "where": "b >" }))]);
    program.run(&[]).exits_with(1, &["did you mean `table`", "no column `c`", "/mappings/0/where", "3 problems"]);
    std::fs::write(program.config(), "{ \"version\": 1,\n  \"mappings\": [,] }").unwrap();
    program.run(&[]).exits_with(1, &["pipeline.json:2:16", "syntax"]);
    std::fs::write(program.config(), "").unwrap();
    program.run(&[]).exits_with(1, &["pipeline.json:1:1"]);
    std::fs::write(program.config(), b"{\xff").unwrap();
    program.run(&[]).exits_with(1, &["not UTF-8"]);
    assert!(!program.output().exists());
}

#[test]
fn invalid_input_folder_is_reported() {
    let program = ready();
    for (name, part) in [("nowhere", "No such file"), ("pipeline.json", "not a folder")] {
        let path = program.home().join(name);
        let mut command = lakemill();
        command.arg("run").arg(program.config()).arg("--input").arg(&path).arg("--output").arg(program.output());
        call(&mut command).exits_with(1, &["--input", &format!("`{}`", path.display()), part]);
    }
    assert!(!program.output().exists());
}

#[test]
fn output_that_is_a_file_is_reported() {
    let program = ready();
    std::fs::write(program.output(), "precious").unwrap();
    program.run(&[]).exits_with(1, &["--output", &format!("`{}`", program.output().display()), "not a folder"]);
    assert_eq!(std::fs::read(program.output()).unwrap(), b"precious");
}

#[test]
fn output_containing_the_input_is_refused() {
    let program = ready();
    let lake = program.lake();
    for output in [lake.clone(), lake.join("../lake/."), program.home().to_owned(), program.home().join("lake/..")] {
        let mut command = lakemill();
        command.arg("run").arg(program.config()).arg("--input").arg(&lake).arg("--output").arg(&output).arg("--clean");
        call(&mut command).exits_with(1, &["--input", "--output", &lake.canonicalize().unwrap().display().to_string()]);
    }
    assert_eq!(files(program.home()), ["lake/in/x.csv", "pipeline.json"]);
}

#[test]
fn output_inside_the_input_is_not_read() {
    let program = Program::of(&json!({ "files": ["**"] }));
    program.put("x.csv", TEXT);
    let output = program.lake().join("in/out");
    for said in ["1 file read", "nothing changed"] {
        let mut command = lakemill();
        command.arg("run").arg(program.config()).arg("--input").arg(program.lake()).arg("--output").arg(&output);
        let ran = call(&mut command).ok();
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
}

#[test]
fn output_folder_with_other_files_is_refused() {
    let program = ready();
    for clean in [&[][..], &["--clean"]] {
        std::fs::create_dir_all(program.output().join("thesis")).unwrap();
        std::fs::write(program.output().join("thesis/chapter.txt"), "precious").unwrap();
        program.run(clean).exits_with(1, &["--output", "`thesis`", "empty"]);
        assert_eq!(files(&program.output()), ["thesis/chapter.txt"]);
    }
}

#[test]
fn clean_run_deletes_only_its_own_files() {
    let program = ready();
    program.run(&[]).ok();
    std::fs::create_dir(program.output().join("notes")).unwrap();
    std::fs::write(program.output().join("notes/todo.txt"), "precious").unwrap();
    std::fs::write(program.output().join("readme.txt"), "precious").unwrap();
    program.run(&["--clean"]).ok();
    let kept = files(&program.output());
    assert!(kept.contains(&"notes/todo.txt".into()) && kept.contains(&"readme.txt".into()), "{kept:?}");
}

#[test]
fn empty_or_missing_output_folder_is_accepted() {
    let program = ready();
    std::fs::create_dir(program.output()).unwrap();
    program.run(&[]).ok();
    let deep = program.home().join("new/deep/out");
    let mut command = lakemill();
    command.arg("run").arg(program.config()).arg("--input").arg(program.lake()).arg("--output").arg(&deep);
    call(&mut command).ok();
    let found = files(&deep);
    assert!(found.iter().any(|file| file.starts_with("t/part-") && file.ends_with(".parquet")), "{found:?}");
}

#[test]
fn concurrent_run_on_an_output_is_refused() {
    let program = ready();
    let lock = OutputLock::acquire(&program.output()).unwrap();
    program.run(&[]).exits_with(1, &[&format!("`{}`", program.output().display()), "another run"]);
    program.run(&["--dry-run"]).exits_with(1, &["another run"]);
    assert!(program.tree().is_empty());
    drop(lock);
    program.run(&[]).ok();
}

#[test]
fn dry_run_writes_no_table_and_no_manifest() {
    let program = ready();
    let ran = program.run(&["--dry-run"]).ok();
    assert!(ran.stdout.contains("dry run: nothing was written"), "{}", ran.stdout);
    assert!(program.tree().is_empty(), "{:?}", program.tree().keys());
    program.run(&[]).ok();
    let before = program.tree();
    program.put("y.csv", "a,b\nbad,bad\n");
    std::fs::remove_file(program.source("x.csv")).unwrap();
    for more in [&["--dry-run"][..], &["--dry-run", "--clean"]] {
        program.run(more).ok();
        assert!(program.tree() == before);
    }
}

#[test]
fn dry_run_leaves_no_folder_behind() {
    let program = ready();
    program.run(&["--dry-run"]).ok();
    assert!(!program.output().exists(), "{:?}", files(&program.output()));
}

#[test]
fn prefix_reads_only_new_files_below_it() {
    let program = Program::of(&json!({ "partition_by": ["a"] }));
    program.put("in/x/1.csv", "a,b\np,1\n").put("in/y/1.csv", "a,b\nq,1\n").run(&[]).ok();
    program.put("in/x/2.csv", "a,b\np,2\n").put("in/y/2.csv", "a,b\nq,2\n");
    program.run(&["--prefix", "in/y/"]).ok();
    assert_eq!(program.rows("t"), ["a=p: 1", "a=q: 1", "a=q: 2"]);
    program.run(&[]).ok();
    assert_eq!(program.rows("t"), ["a=p: 1", "a=p: 2", "a=q: 1", "a=q: 2"]);
}

#[test]
fn prefix_without_files_is_reported() {
    let program = ready();
    let ran = program.run(&["--prefix", "typo/"]);
    assert!(ran.stderr.contains("typo/") || ran.stdout.contains("typo/"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn validate_reports_every_problem_of_a_config() {
    let program = ready();
    let ran = call(lakemill().arg("validate").arg(program.config())).ok();
    assert_eq!(ran.stdout, format!("{}: ok, 1 table\n", program.config().display()));
    program.configure(&[mapping(&json!({ "where": "c > 1" }))]);
    let ran = call(lakemill().arg("validate").arg(program.config()));
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("/mappings/0/where") && ran.stdout.contains("1 problem"), "{}", ran.stdout);
}
