//! `lakemill run` and its help, whole outputs.

use serde_json::json;

use crate::support::program::{Program, call, lakemill, mapping};

/// The text with seconds and sizes, which differ from machine to machine, told as `#`.
fn steady(text: &str, home: &std::path::Path) -> String {
    let text = text.replace(&home.display().to_string(), "HOME");
    let words = |line: &str| {
        let mut out: Vec<String> = Vec::new();
        for word in line.split(' ') {
            let number = word.trim_start_matches('(').parse::<f64>().is_ok() && word.contains('.');
            out.push(if number {
                format!("{}#", if word.starts_with('(') { "(" } else { "" })
            } else {
                word.to_owned()
            });
        }
        out.join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[track_caller]
fn says(program: &Program, more: &[&str], expected: &str) {
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

#[test]
fn runs_tell_what_they_made_of_what() {
    let program = shop();
    says(&program, &["--dry-run"], "");
    says(&program, &[], "");
    says(&program, &[], "");
    program.put("orders/2.csv", "a,b\nz,1\nw,1\n");
    std::fs::remove_file(program.source("orders/1.csv")).unwrap();
    says(&program, &["--dry-run"], "");
    says(&program, &[], "");
    says(&program, &["--clean"], "");
}

#[test]
fn a_failed_run_tells_the_place_and_what_to_do() {
    let program = shop();
    program.configure(&[mapping(
        &json!({ "table": "orders", "files": ["orders/*.csv"], "rejects": { "max_rows": 0, "max_ratio": 0.0 } }),
    )]);
    let ran = program.run(&[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    assert_eq!(steady(&ran.stderr, program.home()), "");
}

#[test]
fn help_tells_every_command_and_option() {
    for (words, expected) in [(&["--help"][..], ""), (&["run", "--help"], ""), (&["validate", "--help"], "")] {
        let ran = call(lakemill().args(words)).ok();
        assert_eq!(ran.stdout, expected);
    }
}

#[test]
fn no_command_tells_the_help() {
    let ran = call(&mut lakemill());
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("Usage: lakemill <COMMAND>") && ran.stderr.contains("validate"), "{}", ran.stderr);
}
