//! DuckDB, Polars and pyarrow read partition values as they were written: directly, or with the column's type given for
//! texts that they would otherwise convert.

use serde_json::{Value, json};

use crate::peers::{script, succeed};
use crate::support::program::Program;

/// Partition texts that are written by default.
const TEXTS: &[&str] = &[
    "1",
    "-1",
    "0",
    "123456789012345678",
    "0.1",
    "1.5",
    "1.0",
    "true",
    "false",
    "null",
    "NULL",
    "None",
    "2024-01-31",
    "2024-01-31 10:00:00",
    "2024-01",
    "2024-Q1",
    "a b",
    " a",
    "a ",
    "a.",
    "a. ",
    ".",
    "..",
    "a/b",
    "a=b",
    "50%",
    "%41",
    "a%2Fb",
    "a+b",
    "a&b",
    "é",
    "e\u{301}",
    "日本",
    "😀",
    "_x",
    ".h",
    "-",
    "~",
    "#",
    "$x",
    "a\\b",
    "C:",
    "a|b",
    "<b>",
    "`",
    "[1]",
    "{a}",
    "1_000",
    "1,5",
    "1L",
    "--1",
    "t",
    "yes",
    "today",
    "1 day",
    "P1D",
    "00000000-0000-0000-0000-000000000000",
    "\u{202e}a",
    "\u{a0}a",
    "e1",
    "1-",
    "1/1",
    "$1",
    "1%",
    "2024-001",
    "1,000",
    "T",
    "1e",
    "x'y",
    "aux",
];

/// Partition texts that are written only if the config says that readers know the type.
const INFERABLE: &[&str] = &[
    "01",
    "+1",
    "-0",
    "1.50",
    "1e3",
    "0x10",
    "NaN",
    "True",
    "2024-1-1",
    " 1",
    "１",
    "99999999999999999999",
    "1d",
    "10:00",
    "inf",
    "epoch",
    "1/2/2024",
    "2024-01-01T10:00:00Z",
    "1.",
    ".5",
];

/// A table for each text alone, and one with all of them; `v` has the text within the file.
fn program(texts: &[&str], inferable_texts: &str) -> Program {
    let mapping = |table: &str, files: &str| {
        json!({
            "table": table, "files": [files], "csv": { "null_values": ["\\N"] },
            "columns": [{ "name": "p", "type": "string" }, { "name": "v", "type": "string" }],
            "partition_by": [{ "column": "p", "inferable_texts": inferable_texts }]
        })
    };
    let mut mappings: Vec<Value> =
        (0..texts.len()).map(|at| mapping(&format!("t{at}"), &format!("in/{at}.csv"))).collect();
    mappings.push(mapping("all", "in/*.csv"));
    let program = Program::new(&mappings);
    for (at, text) in texts.iter().enumerate() {
        let cell = format!("\"{}\"", text.replace('"', "\"\""));
        program.put(&format!("{at}.csv"), format!("p,v\n{cell},{cell}\n"));
    }
    program.run(&[]).ok();
    program
}

fn readers_agree(program: &Program, typed: bool) {
    succeed("partitions.py", script("partitions.py").arg(program.output()).args(typed.then_some("--typed")));
}

#[test]
fn readers_see_partition_texts_unchanged() {
    let program = program(TEXTS, "reject");
    readers_agree(&program, false);
    readers_agree(&program, true);
}

#[test]
fn readers_with_declared_types_see_inferable_texts_unchanged() {
    readers_agree(&program(INFERABLE, "keep"), true);
}
