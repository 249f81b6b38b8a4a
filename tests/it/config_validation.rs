//! Validation of documents with problems: every kind, all at once, with the right pointer.

use lakemill::domain::pipeline::document::schema;
use lakemill::domain::pipeline::validate::{locate, parse, spans};
use lakemill::domain::problem::{Problem, ProblemKind};
use serde_json::{Value, json};

use ProblemKind::*;

const FULL: &str = include_str!("../../testdata/configs/full.json");

fn problems(text: &str) -> Vec<Problem> {
    parse(text).err().unwrap_or_default()
}

/// The problems of `text` are exactly `expected`: kind, pointer, and a part of the message.
fn check(text: &str, expected: &[(ProblemKind, &str, &str)]) {
    let found = problems(text);
    let fits = found.len() == expected.len()
        && found.iter().zip(expected).all(|(f, e)| f.kind == e.0 && f.path == e.1 && f.message.contains(e.2));
    assert!(fits, "of {text}\nexpected {expected:#?}\nfound {found:#?}");
}

/// A document with `value` at `pointer`; missing members on the way are added.
fn with(pointer: &str, value: Value) -> String {
    let mut document = base();
    put(&mut document, pointer, value);
    document.to_string()
}

fn base() -> Value {
    json!({ "version": 1, "mappings": [{
        "table": "t",
        "files": ["*.csv"],
        "csv": {},
        "columns": [
            { "name": "id", "type": "int64" },
            { "name": "Name", "type": "string" },
            { "name": "at", "type": "timestamp" },
            { "name": "day", "type": "date" },
            { "name": "ratio", "type": "float64" }
        ]
    }] })
}

fn put(document: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap_or_else(|| panic!("{parent}")) {
        Value::Object(members) => _ = members.insert(name.replace("~1", "/").replace("~0", "~"), value),
        Value::Array(items) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => items[index] = value,
            _ => items.push(value),
        },
        other => panic!("{other}"),
    }
}

/// Each row: the pointer, its value, and the one problem expected: kind, pointer relative to the mapping (absolute if
/// it starts with `//`), part of the message.
fn check_each(rows: &[(&str, Value, ProblemKind, &str, &str)]) {
    for (at, value, kind, path, message) in rows {
        let absolute = |p: &str| match p.strip_prefix('/') {
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            _ => format!("/mappings/0{p}"),
        };
        check(&with(&absolute(at), value.clone()), &[(*kind, &absolute(path), message)]);
    }
}

#[test]
fn invalid_json_is_a_syntax_problem_with_line_and_column() {
    for (text, message) in [
        ("", "empty"),
        (" \n", "empty"),
        ("{", "line 1 column 1: EOF while parsing an object"),
        ("{ \"version\": 1,\n  \"mappings\": [],\n}", "line 3 column 1: trailing comma"),
        ("{ \"a\": 'x' }", "line 1 column 8: expected value"),
        ("{} {}", "trailing characters"),
        ("// no\n{}", "line 1 column 1"),
        ("{ \"a\": 1e999 }", "number out of range"),
        ("{ \"a\": \"\u{1}\" }", "control character"),
        ("{ \"a\": \"\\ud800\" }", "hex escape"),
    ] {
        check(text, &[(Syntax, "", message)]);
    }
    check(&"[".repeat(100_000), &[(Limit, "", "recursion limit")]);
}

#[test]
fn unsupported_version_is_the_only_problem() {
    for version in [json!(2), json!(0), json!(-1), json!(1.5), json!(1e10)] {
        let text = json!({ "version": version, "maps": 5 }).to_string();
        check(&text, &[(UnsupportedVersion, "/version", "expected 1")]);
    }
    check(
        r#"{"version": "1", "mappings": []}"#,
        &[(WrongType, "/version", "expected an integer, found the string `1`")],
    );
    check(r#"{"mappings": []}"#, &[(MissingField, "", "missing field `version`")]);
}

#[test]
fn missing_fields_are_reported_at_their_parent() {
    check("{}", &[(MissingField, "", "`version`"), (MissingField, "", "`mappings`")]);
    check(
        r#"{"version":1,"mappings":[{}]}"#,
        &[
            (MissingField, "/mappings/0", "`table` (the table's name)"),
            (MissingField, "/mappings/0", "`files`"),
            (MissingField, "/mappings/0", "`columns`"),
        ],
    );
    check_each(&[
        ("/columns/0", json!({ "type": "int8" }), MissingField, "/columns/0", "`name`"),
        ("/columns/0", json!({ "name": "x" }), MissingField, "/columns/0", "`type`"),
        ("/checks", json!([{ "name": "x" }]), MissingField, "/checks/0", "`assert`"),
        ("/partition_by", json!([{ "transform": "day" }]), MissingField, "/partition_by/0", "`column`"),
    ]);
}

#[test]
fn unknown_fields_get_a_suggestion() {
    check_each(&[
        ("//tilte", json!(""), UnknownField, "//tilte", "did you mean `title`?"),
        ("/tabel", json!("x"), UnknownField, "/tabel", "unknown field `tabel`: did you mean `table`?"),
        ("/csv/delimeter", json!(";"), UnknownField, "/csv/delimeter", "did you mean `delimiter`?"),
        ("/csv/zzz", json!(1), UnknownField, "/csv/zzz", "expected one of `delimiter`, `quote`"),
        ("/columns/1/format", json!("%Y"), UnknownField, "/columns/1/format", "did you mean `formats`?"),
        ("/parquet", json!({ "level": 3 }), UnknownField, "/parquet/level", "expected one of"),
        ("/rejects", json!({ "max_row": 3 }), UnknownField, "/rejects/max_row", "did you mean `max_rows`?"),
        ("/partition_by", json!([{ "column": "id", "as": "x" }]), UnknownField, "/partition_by/0/as", "`column`"),
        ("/a~1b~0", json!(1), UnknownField, "/a~1b~0", "unknown field `a/b~`"),
    ]);
}

#[test]
fn wrong_types_report_found_and_expected() {
    check("[]", &[(WrongType, "", "expected an object, found an array")]);
    check("null", &[(WrongType, "", "expected an object, found null")]);
    check_each(&[
        ("//mappings", json!({}), WrongType, "//mappings", "expected an array, found an object"),
        ("//auto_run", json!("yes"), WrongType, "//auto_run", "expected a boolean, found the string `yes`"),
        ("//mappings/0", json!(5), WrongType, "//mappings/0", "expected an object, found the number `5`"),
        ("/table", json!(5), WrongType, "/table", "expected a string, found the number `5`"),
        ("/files", json!("*.csv"), WrongType, "/files", "expected an array, found the string"),
        ("/files/0", json!(null), WrongType, "/files/0", "expected a string, found null"),
        ("/csv/skip_rows", json!(1.5), WrongType, "/csv/skip_rows", "expected an integer, found the number `1.5`"),
        ("/csv/skip_rows", json!("3"), WrongType, "/csv/skip_rows", "expected an integer, found the string `3`"),
        ("/csv/quote", json!(1), WrongType, "/csv/quote", "expected a string or null, found the number"),
        ("/csv/header", json!(null), WrongType, "/csv/header", "expected a boolean, found null"),
        ("/csv/quotes", json!(true), WrongType, "/csv/quotes", "expected one of `strict` or `lenient`, found `true`"),
        (
            "/columns/0/from",
            json!(true),
            WrongType,
            "/columns/0/from",
            "expected a string, an array or an integer, found `true`",
        ),
        ("/columns/0/from", json!(["a", 1]), WrongType, "/columns/0/from/1", "expected a string, found the number `1`"),
        ("/columns/0/type", json!(["int8"]), WrongType, "/columns/0/type", "expected a string, found an array"),
        ("/partition_by", json!([5]), WrongType, "/partition_by/0", "expected a string or an object"),
        ("/partition_by", json!([{ "column": 5 }]), WrongType, "/partition_by/0/column", "expected a string"),
        ("/partition_by", json!("id"), WrongType, "/partition_by", "expected an array"),
        ("/where", json!(true), WrongType, "/where", "expected a string or null, found `true`"),
        ("/rejects", json!({ "max_ratio": "all" }), WrongType, "/rejects/max_ratio", "expected a number"),
    ]);
}

#[test]
fn choices_get_a_suggestion() {
    check_each(&[
        (
            "/csv/quotes",
            json!("strickt"),
            InvalidValue,
            "/csv/quotes",
            "expected one of `strict` or `lenient`: did you mean `strict`?",
        ),
        ("/extra_columns", json!("null"), InvalidValue, "/extra_columns", "expected one of `ignore` or `fail`"),
        (
            "/parquet",
            json!({ "compression": "gzip" }),
            InvalidValue,
            "/parquet/compression",
            "`zstd`, `snappy`, `lz4` or `none`",
        ),
        ("/columns/0/on_error", json!("skip"), InvalidValue, "/columns/0/on_error", "`reject`, `null` or `fail`"),
        (
            "/partition_by",
            json!([{ "column": "at", "transform": "days" }]),
            InvalidValue,
            "/partition_by/0/transform",
            "did you mean `day`?",
        ),
    ]);
}

#[test]
fn names_follow_their_rules() {
    check_each(&[
        ("/table", json!("Trips"), InvalidValue, "/table", "`Trips` is not a table name: expected 1 to 63"),
        ("/table", json!("_rejected_rows"), InvalidValue, "/table", "not a table name"),
        ("/table", json!(""), InvalidValue, "/table", "not a table name"),
        ("/table", json!("t".repeat(64)), Limit, "/table", "63"),
        ("/columns/0/name", json!(""), InvalidValue, "/columns/0/name", "not a column name"),
        ("/columns/0/name", json!("a\u{202e}b"), InvalidValue, "/columns/0/name", "not a column name"),
        ("/columns/0/name", json!("é".repeat(65)), Limit, "/columns/0/name", "128 bytes"),
        ("/columns/0/name", json!("n".repeat(200)), Limit, "/columns/0/name", "128"),
        ("/checks", json!([{ "name": "\n", "assert": "true" }]), InvalidValue, "/checks/0/name", "not a check name"),
        (
            "/partition_by",
            json!([{ "column": "id", "name": " " }]),
            InvalidValue,
            "/partition_by/0/name",
            "not a partition name",
        ),
    ]);
}

#[test]
fn duplicates_are_reported_at_the_second() {
    let twice = r#"{"version": 1, "mappings": [], "title": "", "title": "x"}"#;
    check(twice, &[(Duplicate, "/title", "duplicate field `title`")]);
    assert_eq!(locate(twice, "/title"), Some((1, 54)));
    let mut two = base();
    let first = two["mappings"][0].clone();
    put(&mut two, "/mappings/-", first);
    check(
        &two.to_string(),
        &[(Duplicate, "/mappings/1/table", "the table `t` is already defined by /mappings/0/table")],
    );
    check_each(&[
        ("/columns/1/name", json!("ID"), Duplicate, "/columns/1/name", "the column `ID` duplicates column 0"),
        ("/files", json!(["a/*.csv", "a/*.csv"]), Duplicate, "/files/1", "duplicates item 0"),
        (
            "/checks",
            json!([{ "name": "a", "assert": "true" }, { "name": "A", "assert": "true" }]),
            Duplicate,
            "/checks/1/name",
            "check 0",
        ),
        ("/columns/0/from", json!(["x", "y", "X"]), Duplicate, "/columns/0/from/2", "`X` is listed twice"),
        ("/columns/2/formats", json!(["%F %T", "%F %T"]), Duplicate, "/columns/2/formats/1", "is listed twice"),
        ("/csv/null_values", json!(["", "NA", "NA"]), Duplicate, "/csv/null_values/2", "`NA` is listed twice"),
        ("/csv/true_values", json!(["yes", "false"]), Duplicate, "/csv/false_values/0", "one of `true_values`"),
        ("/sort_by", json!(["id", "ID"]), Duplicate, "/sort_by/1", "already"),
        ("/partition_by", json!(["id", "id"]), Duplicate, "/partition_by/1", "already partitioned by"),
        (
            "/partition_by",
            json!([{ "column": "id", "name": ".h" }]),
            InvalidValue,
            "/partition_by/0/name",
            "starts differently",
        ),
        (
            "/partition_by",
            json!(["id", { "column": "at", "transform": "day", "name": "ID" }]),
            Duplicate,
            "/partition_by/1/name",
            "used by field 0",
        ),
        (
            "/partition_by",
            json!([{ "column": "at", "transform": "day", "name": "DAY" }]),
            Duplicate,
            "/partition_by/0/name",
            "a stored column",
        ),
        (
            "/partition_by",
            json!([{ "column": "id", "name": "name" }]),
            Duplicate,
            "/partition_by/0/name",
            "a stored column",
        ),
    ]);
}

#[test]
fn partition_may_take_the_name_of_a_column_outside_the_files() {
    check(&with("/mappings/0/partition_by", json!(["day", { "column": "at", "transform": "day" }])), &[]);
    let swapped = json!([{ "column": "id", "name": "name" }, { "column": "name", "name": "id" }]);
    check(&with("/mappings/0/partition_by", swapped), &[]);
}

#[test]
fn types_of_other_systems_are_translated() {
    for (found, message) in [
        ("int", "did you mean `int32`?"),
        ("BIGINT", "did you mean `int64`?"),
        ("String", "did you mean `string`?"),
        ("varchar(20)", "did you mean `string`?"),
        ("double", "did you mean `float64`?"),
        ("timestamp with time zone", "did you mean `timestamptz`?"),
        ("datetime", "did you mean `timestamp`?"),
        ("int46", "did you mean `int"),
        ("decimal", "did you mean `decimal(18,2)`?"),
        ("numeric(10,2)", "did you mean `decimal"),
        ("decimal(39,2)", "expected `decimal(p,s)` with 1 ≤ p ≤ 38"),
        ("decimal(5,6)", "0 ≤ s ≤ p"),
        ("decimal(10)", "expected `decimal(p,s)`"),
        ("blob", "expected one of boolean, int8"),
        ("", "`` is not a type"),
    ] {
        let text = with("/mappings/0/columns/0/type", json!(found));
        check(&text, &[(InvalidValue, "/mappings/0/columns/0/type", message)]);
    }
}

#[test]
fn formats_must_be_valid_and_determine_the_type() {
    let (at, day) = ("/columns/2/formats", "/columns/3/formats");
    check_each(&[
        (
            at,
            json!(["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %Q"]),
            InvalidValue,
            "/columns/2/formats/1",
            "unknown specifier `%Q`",
        ),
        (at, json!(["%Y-%m-%d %H:%M:%"]), InvalidValue, "/columns/2/formats/0", "unknown specifier `%`"),
        (at, json!(["iso", "%Y-%m"]), InvalidValue, "/columns/2/formats/1", "doesn't determine a timestamp"),
        (at, json!(["%Y-%m-%d %z"]), TypeMismatch, "/columns/2/formats/0", "an offset"),
        (at, json!(["%H:%M:%S"]), InvalidValue, "/columns/2/formats/0", "it reads no date"),
        (at, json!(["%Y-%m-%d %I:%M:%S"]), InvalidValue, "/columns/2/formats/0", "doesn't determine"),
        (at, json!(["now"]), InvalidValue, "/columns/2/formats/0", "doesn't determine"),
        (at, json!([""]), InvalidValue, "/columns/2/formats/0", "doesn't determine"),
        (at, json!(["%Y-%m-%dT%H:%M:%S%z"]), TypeMismatch, "/columns/2/formats/0", "use the type `timestamptz`"),
        (at, json!(["%Y-%m-%d %H:%M:%S %Z"]), InvalidValue, "/columns/2/formats/0", "`%Z`"),
        (at, json!(["x".repeat(300)]), Limit, "/columns/2/formats/0", "300 bytes"),
        (
            day,
            json!(["%Y-%m-%d %H:%M"]),
            TypeMismatch,
            "/columns/3/formats/0",
            "a time of day, which type `date` doesn't store",
        ),
        (day, json!(["%s"]), TypeMismatch, "/columns/3/formats/0", "a time"),
        (day, json!(["%Y-%m"]), InvalidValue, "/columns/3/formats/0", "doesn't determine a date"),
        (day, json!(["%Y%-m%-d"]), InvalidValue, "/columns/3/formats/0", "doesn't determine a date"),
        (
            "/columns/0/formats",
            json!(["%Y"]),
            TypeMismatch,
            "/columns/0/formats",
            "a column of type int64 has no `formats`",
        ),
    ]);
    for (ty, good) in [
        ("date", ["%Y-%m-%d", "%d/%m/%y", "%d %B %Y", "%Y%m%d", "%Y-%j", "%a, %-d %b %Y", "%G-W%V-%u"]),
        ("time", ["%H:%M", "%I:%M %p", "%T", "%H:%M:%S%.f", "%H%M%S%3f", "%R", "%l:%M:%S %P"]),
        (
            "timestamp",
            ["%F %T", "%s", "%d.%m.%Y %H:%M", "%c", "%Y-%m-%dT%H:%M:%S%.6f", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S"],
        ),
        ("timestamptz", ["%+", "%F %T", "%F %T %z", "%FT%T%:z", "%FT%T%#z", "%s", "%a, %d %b %Y %H:%M:%S %z"]),
    ] {
        for format in good {
            check(&with("/mappings/0/columns/-", json!({ "name": "x", "type": ty, "formats": [format] })), &[]);
        }
    }
}

#[test]
fn columns_are_read_or_computed_with_or_without_a_header() {
    let computed = |extra: Value| {
        let mut column = json!({ "name": "x", "type": "timestamptz", "expr": "id" });
        extra.as_object().unwrap().iter().for_each(|(k, v)| column[k] = v.clone());
        column
    };
    check_each(&[
        ("/columns/5", computed(json!({ "from": "a" })), InvalidValue, "/columns/5/from", "either `from` or `expr`"),
        (
            "/columns/5",
            computed(json!({ "formats": ["%F"] })),
            InvalidValue,
            "/columns/5/formats",
            "computed, not read",
        ),
        (
            "/columns/5",
            computed(json!({ "timezone": "UTC" })),
            InvalidValue,
            "/columns/5/timezone",
            "computed, not read",
        ),
        ("/columns/5", computed(json!({ "expr": "  " })), InvalidValue, "/columns/5/expr", "found only white space"),
        ("/columns/5", computed(json!({ "expr": "" })), InvalidValue, "/columns/5/expr", "found only white space"),
        ("/columns/5", computed(json!({ "expr": "é".repeat(9000) })), Limit, "/columns/5/expr", "16384 bytes"),
        ("/columns/5", computed(json!({ "expr": "x".repeat(17_000) })), Limit, "/columns/5/expr", "16384"),
        ("/columns/0/from", json!(0), InvalidValue, "/columns/0/from", "needs `csv.header` to be false"),
        ("/columns/0/from", json!(-1), InvalidValue, "/columns/0/from", "found `-1`"),
        ("/columns/0/from", json!(70_000), Limit, "/columns/0/from", "found `70000`"),
        ("/columns/0/from", json!([]), InvalidValue, "/columns/0/from", "at least 1 item"),
        ("/columns/0/timezone", json!("UTC"), TypeMismatch, "/columns/0/timezone", "requires type timestamptz"),
        (
            "/columns/5",
            json!({ "name": "x", "type": "timestamptz", "timezone": "America/NewYork" }),
            InvalidValue,
            "/columns/5/timezone",
            "did you mean `America/New_York`?",
        ),
        (
            "/columns/5",
            json!({ "name": "x", "type": "timestamptz", "timezone": "+02:00" }),
            InvalidValue,
            "/columns/5/timezone",
            "not an IANA time zone",
        ),
        (
            "/columns",
            json!([{ "name": "x", "type": "int8", "expr": "1" }]),
            InvalidValue,
            "/columns",
            "at least one must be read from the files",
        ),
        (
            "/columns",
            json!([{ "name": "x", "type": "string", "from_path": "{}" }]),
            InvalidValue,
            "/columns",
            "at least one must be read from the files",
        ),
        ("/columns/5", computed(json!({ "from_path": "{}" })), InvalidValue, "/columns/5/from_path", "or `expr`"),
        (
            "/columns/0",
            json!({ "name": "id", "type": "int64", "from": "key", "from_path": "{}" }),
            InvalidValue,
            "/columns/0/from",
            "either `from` or `from_path`",
        ),
        (
            "/columns/5",
            json!({ "name": "x", "type": "string", "from_path": "sales_*" }),
            InvalidValue,
            "/columns/5/from_path",
            "expected one `{}`, which stands for the value, found 0",
        ),
        (
            "/columns/5",
            json!({ "name": "x", "type": "string", "from_path": ["a", "b", "A"] }),
            Duplicate,
            "/columns/5/from_path/2",
            "listed twice",
        ),
        (
            "/columns/5",
            json!({ "name": "x", "type": "string", "from_path": [] }),
            InvalidValue,
            "/columns/5/from_path",
            "at least 1 item",
        ),
        ("/columns", json!([]), InvalidValue, "/columns", "at least 1 item"),
        ("/files", json!([]), InvalidValue, "/files", "at least 1 item"),
    ]);
    let mut headless = base();
    headless["mappings"][0]["csv"]["header"] = json!(false);
    headless["mappings"][0]["columns"][0]["from"] = json!("id");
    check(&headless.to_string(), &[(InvalidValue, "/mappings/0/columns/0/from", "give a position")]);
}

#[test]
fn contradictory_dialects_are_refused() {
    check_each(&[
        ("/csv/delimiter", json!(""), InvalidValue, "/csv/delimiter", "1 to 8 bytes"),
        ("/csv/delimiter", json!("123456789"), Limit, "/csv/delimiter", "has 9 bytes"),
        ("/csv/delimiter", json!("ééééé"), Limit, "/csv/delimiter", "has 10 bytes"),
        ("/csv/delimiter", json!("|\n"), InvalidValue, "/csv/delimiter", "line break"),
        ("/csv/delimiter", json!("\"|"), InvalidValue, "/csv/delimiter", "contains the quote"),
        ("/csv/quote", json!(","), InvalidValue, "/csv/quote", "contains the quote"),
        ("/csv/quote", json!("''"), InvalidValue, "/csv/quote", "one ASCII character"),
        ("/csv/quote", json!("é"), InvalidValue, "/csv/quote", "one ASCII character"),
        ("/csv/quote", json!(""), InvalidValue, "/csv/quote", "one ASCII character"),
        ("/csv/quote", json!("\n"), InvalidValue, "/csv/quote", "not a line break"),
        ("/csv/escape", json!("\""), InvalidValue, "/csv/escape", "leave `escape` null"),
        ("/csv/escape", json!(","), InvalidValue, "/csv/escape", "part of the delimiter"),
        ("/csv", json!({ "quote": null, "escape": "\\" }), InvalidValue, "/csv/escape", "nothing to escape"),
        ("/csv/comment", json!("\""), InvalidValue, "/csv/comment", "the comment mark is the quote"),
        (
            "/csv",
            json!({ "escape": "#", "comment": "#" }),
            InvalidValue,
            "/csv/comment",
            "the comment mark is the escape",
        ),
        ("/csv/comment", json!(","), InvalidValue, "/csv/comment", "part of the delimiter"),
        ("/csv/width", json!(5), InvalidValue, "/csv/width", "files without one"),
        (
            "/csv",
            json!({ "header": false, "width": 4 }),
            InvalidValue,
            "/csv/width",
            "the column `ratio` takes position 4, counted from 0",
        ),
        ("/csv/blank_lines", json!("keep"), InvalidValue, "/csv/blank_lines", "expected one of"),
        ("/csv/thousands", json!("."), InvalidValue, "/csv/thousands", "also the decimal mark"),
        ("/csv/decimal", json!("5"), InvalidValue, "/csv/decimal", "a character such as"),
        ("/csv/decimal", json!("e"), InvalidValue, "/csv/decimal", "a character such as"),
        ("/csv/encoding", json!("utf-9"), InvalidValue, "/csv/encoding", "did you mean `utf-8`?"),
        ("/csv/encoding", json!("klingon"), InvalidValue, "/csv/encoding", "such as `utf-8`"),
        ("/csv/encoding", json!("iso-2022-kr"), InvalidValue, "/csv/encoding", "WHATWG"),
        ("/csv/true_values", json!([]), InvalidValue, "/csv/true_values", "at least 1 item"),
        (
            "/csv",
            json!({ "header": false, "skip_rows_after_header": 1 }),
            InvalidValue,
            "/csv/skip_rows_after_header",
            "use `skip_rows`",
        ),
    ]);
}

#[test]
fn globs_stay_within_the_pipelines_folder() {
    for (glob, message) in [
        ("", "empty"),
        ("/a.csv", "relative"),
        ("s3://bucket/a.csv", "relative"),
        ("a/../b.csv", "`..`"),
        ("./a.csv", "segment"),
        ("a//b.csv", "segment"),
        ("a\\b.csv", "backslash"),
        ("a\u{7}.csv", "control"),
        ("a/[b.csv", "unclosed character class"),
        ("a/{b,c.csv", "unclosed alternate"),
        ("!", "empty"),
        ("!/a.csv", "relative"),
    ] {
        check(&with("/mappings/0/files/0", json!(glob)), &[(InvalidGlob, "/mappings/0/files/0", message)]);
    }
    check(&with("/mappings/0/files/0", json!("x".repeat(1025))), &[(Limit, "/mappings/0/files/0", "1024 bytes")]);
    for good in ["**/*.csv", "a/**", "a b/[0-9]?.csv", "{x,y}/*.csv.gz", "a.csv", "..a/b..csv", "été/*.csv"] {
        check(&with("/mappings/0/files/0", json!(good)), &[]);
    }
    check(&with("/mappings/0/files", json!(["a/*.csv", "!a/b.csv"])), &[]);
    let all_left_out = [(InvalidGlob, "/mappings/0/files", "all globs leave files out")];
    check(&with("/mappings/0/files", json!(["!a.csv"])), &all_left_out);
}

#[test]
fn partitions_and_sorting_need_suitable_columns() {
    let by = |column: &str, transform: &str| json!([{ "column": column, "transform": transform }]);
    check_each(&[
        ("/partition_by", json!(["nmae"]), UnknownColumn, "/partition_by/0", "did you mean `Name`?"),
        ("/partition_by", by("zzz", "day"), UnknownColumn, "/partition_by/0/column", "has no column `zzz`"),
        ("/sort_by", json!(["id", "idd"]), UnknownColumn, "/sort_by/1", "did you mean `id`?"),
        ("/partition_by", json!(["ratio"]), TypeMismatch, "/partition_by/0", "found `ratio` of type float64"),
        (
            "/partition_by",
            by("day", "hour"),
            TypeMismatch,
            "/partition_by/0/column",
            "by hour requires a timestamp or timestamptz",
        ),
        (
            "/partition_by",
            by("id", "year"),
            TypeMismatch,
            "/partition_by/0/column",
            "by year requires a date, timestamp",
        ),
        ("/partition_by", json!(["id", "name", "at", "day", "x"]), UnknownColumn, "/partition_by/4", "`x`"),
    ]);
    let mut document = base();
    put(&mut document, "/mappings/0/partition_by", json!(["id"]));
    put(&mut document, "/mappings/0/columns/0/type", json!("json"));
    check(&document.to_string(), &[(TypeMismatch, "/mappings/0/partition_by/0", "of type json")]);
    put(&mut document, "/mappings/0/columns/0/type", json!("int8"));
    put(&mut document, "/mappings/0/sort_by", json!(["at", "id"]));
    check(&document.to_string(), &[(InvalidValue, "/mappings/0/sort_by/1", "the same in all rows of a file")]);
    let mut all = base();
    put(&mut all, "/mappings/0/columns", json!([{ "name": "id", "type": "int8" }, { "name": "d", "type": "date" }]));
    put(&mut all, "/mappings/0/partition_by", json!(["id", "d"]));
    check(&all.to_string(), &[(InvalidValue, "/mappings/0/partition_by", "at least one must be stored")]);
}

#[test]
fn numbers_keep_to_their_ranges() {
    check_each(&[
        ("/rejects", json!({ "max_ratio": 1.5 }), InvalidValue, "/rejects/max_ratio", "expected 0 to 1, found `1.5`"),
        ("/rejects", json!({ "max_ratio": -0.1 }), InvalidValue, "/rejects/max_ratio", "expected 0 to 1"),
        ("/rejects", json!({ "max_rows": -1 }), InvalidValue, "/rejects/max_rows", "found `-1`"),
        ("/parquet", json!({ "compression_level": 0 }), InvalidValue, "/parquet/compression_level", "expected 1 to 22"),
        (
            "/parquet",
            json!({ "compression_level": 23 }),
            InvalidValue,
            "/parquet/compression_level",
            "expected 1 to 22",
        ),
        (
            "/parquet",
            json!({ "compression": "snappy", "compression_level": 3 }),
            InvalidValue,
            "/parquet/compression_level",
            "only the compression `zstd`",
        ),
        (
            "/parquet",
            json!({ "row_group_rows": 10 }),
            Limit,
            "/parquet/row_group_rows",
            "expected 1024 to 16777216, found `10`",
        ),
        ("/parquet", json!({ "tail_text_bytes": 0 }), Limit, "/parquet/tail_text_bytes", "expected 1 to 1099511627776"),
        (
            "/parquet",
            json!({ "file_text_bytes": 1_000 }),
            InvalidValue,
            "/parquet/tail_text_bytes",
            "expected at most `file_text_bytes` (1000), found 16777216",
        ),
        ("/parquet", json!({ "file_bytes_max": 5e9 }), Limit, "/parquet/file_bytes_max", "found `5000000000`"),
        ("/csv/record_bytes_max", json!(1 << 30), Limit, "/csv/record_bytes_max", "expected 1024 to 67108864"),
        ("/csv/skip_rows", json!(-1), InvalidValue, "/csv/skip_rows", "expected 0 to 100000"),
        ("/csv/skip_rows", json!(100_001), Limit, "/csv/skip_rows", "expected 0 to 100000"),
        ("/csv/skip_footer_rows", json!(1_001), Limit, "/csv/skip_footer_rows", "1000"),
        ("/csv/footer_values", json!(["Total"]), InvalidValue, "/csv/footer_values", "`skip_footer_rows` is 0"),
        (
            "/csv",
            json!({ "skip_footer_rows": 1, "footer_values": ["a", "a"] }),
            Duplicate,
            "/csv/footer_values/1",
            "twice",
        ),
        ("//title", json!("x".repeat(201)), Limit, "//title", "at most 200 characters, found 201"),
    ]);
    check(&with("/mappings/0/rejects", json!({ "max_rows": u64::MAX, "max_ratio": 1 })), &[]);
}

#[test]
fn every_list_has_a_limit() {
    let columns: Vec<Value> = (0..4_097).map(|i| json!({ "name": format!("c{i}"), "type": "int8" })).collect();
    check(
        &with("/mappings/0/columns", json!(columns)),
        &[(Limit, "/mappings/0/columns", "at most 4096 items, found 4097")],
    );
    let globs: Vec<String> = (0..257).map(|i| format!("{i}.csv")).collect();
    check(&with("/mappings/0/files", json!(globs)), &[(Limit, "/mappings/0/files", "at most 256 items")]);
    let big = format!("{{\"version\":1,\"mappings\":[],\"description\":\"{}\"}}", "x".repeat(4 << 20));
    check(&big, &[(Limit, "", "4194304 bytes")]);
    let formats: Vec<String> = (0..33).map(|i| format!("%F %T {i}")).collect();
    let at = "/mappings/0/columns/2/formats";
    check(&with(at, json!(formats)), &[(Limit, at, "at most 32 items, found 33")]);
    let unknown: String = (0..5_000).map(|i| format!("\"u{i}\":0,")).collect();
    assert_eq!(problems(&format!("{{{unknown}\"version\":1,\"mappings\":[]}}")).len(), 1_000);
}

/// Would take hours with any rule that compares every pair of items.
#[test]
fn lists_far_beyond_their_limits_are_refused_quickly() {
    let names: Vec<String> = (0..150_000).map(|i| format!("n{i}")).collect();
    for at in ["/columns/0/from", "/csv/null_values", "/csv/true_values", "/files", "/sort_by", "/partition_by"] {
        let at = format!("/mappings/0{at}");
        let found = problems(&with(&at, json!(names)));
        assert!(found.iter().any(|p| p.kind == Limit && p.path == at), "{at}: {found:?}");
    }
    let checks: Vec<Value> = (0..60_000).map(|i| json!({ "name": format!("n{i}"), "assert": "" })).collect();
    assert_eq!(problems(&with("/mappings/0/checks", json!(checks))).len(), 1, "the first of a large config");
    // Brackets and commas within texts don't count.
    let found = problems(&with("/mappings/0/files", json!(vec!["[{,\",]"; 90_000])));
    assert!(found.iter().all(|p| p.path.starts_with("/mappings/0/files")), "{found:?}");
    let many = vec!["[]"; 110_000].join(",");
    check(&format!("{{\"version\":1,\"mappings\":[{many}]}}"), &[(Limit, "", "at most 200000 values and brackets")]);
}

#[test]
fn all_problems_are_reported_in_document_order() {
    let text = r#"{ "version": 1, "titel": "x",
        "mappings": [
          { "table": "Bad Table", "files": ["/abs.csv", "ok.csv"],
            "csv": { "delimiter": "", "encoding": "utf9", "quotes": "maybe", "skip_rows": -4 },
            "columns": [ { "name": "a", "type": "int" }, { "name": "A", "type": "date", "formats": ["%Q"] } ],
            "partition_by": ["b", { "column": "a", "transform": "day" }],
            "sort_by": ["a", 5],
            "rejects": { "max_ratio": 2 },
            "parquet": { "compression": "lz4", "compression_level": 3 } },
          { "table": "ok", "files": ["x"], "columns": [ { "name": "x", "type": "string", "from": 3 } ] } ] }"#;
    let m = "/mappings/0";
    check(
        text,
        &[
            (UnknownField, "/titel", "did you mean `title`?"),
            (InvalidValue, &format!("{m}/table"), "not a table name"),
            (InvalidGlob, &format!("{m}/files/0"), "relative"),
            (InvalidValue, &format!("{m}/csv/delimiter"), ""),
            (InvalidValue, &format!("{m}/csv/encoding"), ""),
            (InvalidValue, &format!("{m}/csv/quotes"), ""),
            (InvalidValue, &format!("{m}/csv/skip_rows"), ""),
            (InvalidValue, &format!("{m}/columns/0/type"), "`int32`"),
            (Duplicate, &format!("{m}/columns/1/name"), ""),
            (InvalidValue, &format!("{m}/columns/1/formats/0"), "`%Q`"),
            (UnknownColumn, &format!("{m}/partition_by/0"), ""),
            (WrongType, &format!("{m}/sort_by/1"), ""),
            (InvalidValue, &format!("{m}/rejects/max_ratio"), ""),
            (InvalidValue, &format!("{m}/parquet/compression_level"), ""),
            (InvalidValue, "/mappings/1/columns/0/from", "header"),
        ],
    );
}

#[test]
fn problems_cause_no_further_problems() {
    let m = |rest: &str| format!("/mappings/0{rest}");
    let mut document = base();
    put(&mut document, &m("/partition_by"), json!(["gone", "at"]));
    put(&mut document, &m("/sort_by"), json!(["gone"]));
    // The column could be the one whose name has a problem.
    put(&mut document, &m("/columns/1"), json!({ "name": 5, "type": "string" }));
    check(&document.to_string(), &[(WrongType, &m("/columns/1/name"), "")]);
    put(&mut document, &m("/columns/1"), json!({ "type": "string" }));
    check(&document.to_string(), &[(MissingField, &m("/columns/1"), "")]);
    put(&mut document, &m("/columns/1"), json!(null));
    check(&document.to_string(), &[(WrongType, &m("/columns/1"), "")]);
    put(&mut document, &m("/columns"), json!("none"));
    check(&document.to_string(), &[(WrongType, &m("/columns"), "")]);
    // A type that can't be parsed fits every transform and format.
    let mut document = base();
    put(&mut document, &m("/partition_by"), json!([{ "column": "at", "transform": "hour" }]));
    put(
        &mut document,
        &m("/columns/2"),
        json!({ "name": "at", "type": "datetime", "formats": ["%F %T"], "timezone": "UTC" }),
    );
    check(&document.to_string(), &[(InvalidValue, &m("/columns/2/type"), "")]);
    // The header setting is invalid, so its effect is unknown.
    let mut document = base();
    put(&mut document, &m("/csv/header"), json!("no"));
    put(&mut document, &m("/columns/0/from"), json!(0));
    check(&document.to_string(), &[(WrongType, &m("/csv/header"), "")]);
    // Names replaced by a default don't collide.
    let mut document = base();
    put(&mut document, &m("/csv"), json!({ "delimiter": 5, "quote": ",", "thousands": ".", "decimal": 3 }));
    check(&document.to_string(), &[(WrongType, &m("/csv/delimiter"), ""), (WrongType, &m("/csv/decimal"), "")]);
}

#[test]
fn nodes_are_located_by_line_and_character() {
    let text = "{\n  \"é/~\": [1, {\"x\": \"ü\"}],\n\t\"b\" : true\n}";
    for (pointer, place) in [
        ("", Some((1, 1))),
        ("/é~1~0", Some((2, 10))),
        ("/é~1~0/0", Some((2, 11))),
        ("/é~1~0/1/x", Some((2, 20))),
        ("/b", Some((3, 8))),
        ("/c", None),
        ("/é~1~0/2", None),
        ("b", None),
    ] {
        assert_eq!(locate(text, pointer), place, "{pointer}");
    }
    for broken in ["{\"a\": [1, 2", "{\"a\" 1}", "[}", "{{{{", "\"", "[1,,2]", "{\"a\":\"\\", "\u{feff}{\"é"] {
        let _ = locate(broken, "/a/1");
    }
}

#[test]
fn problems_are_shown_at_the_value_or_the_unknown_name() {
    let text = "{ \"version\": 1,\n  \"titel\": \"x\",\n  \"mappings\": 12345 }";
    let found = problems(text);
    let places: Vec<_> = spans(text, &found).into_iter().map(|p| (p.line, p.column, p.width)).collect();
    assert_eq!(places, [(2, 3, 7), (3, 15, 5)]);
    let text = "{ \"version\": 1,\n  oops }";
    let places = self::spans(text, &problems(text));
    assert_eq!((places[0].line, places[0].column), (2, 3));
}

/// Every document made by replacing or removing one node of the full example.
fn mutations() -> Vec<Value> {
    fn pointers(node: &Value, at: String, out: &mut Vec<String>) {
        match node {
            Value::Object(members) => members.iter().for_each(|(k, v)| pointers(v, format!("{at}/{k}"), out)),
            Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| pointers(v, format!("{at}/{i}"), out)),
            _ => {}
        }
        out.push(at);
    }
    let full: Value = serde_json::from_str(FULL).unwrap();
    let mut all = Vec::new();
    pointers(&full, String::new(), &mut all);
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(3.0),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("id"),
        json!("x".repeat(20_000)),
        json!([]),
        json!([""]),
        json!([null]),
        json!(["a", "a"]),
        json!({}),
        json!({ "x": 1 }),
        json!([{}]),
        json!({ "name": "z", "type": "int8" }),
    ];
    let mut documents = vec![full.clone()];
    for pointer in all.iter().filter(|p| !p.is_empty()) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut removed = full.clone();
        match removed.pointer_mut(parent).unwrap() {
            Value::Object(members) => _ = members.remove(name),
            Value::Array(items) => _ = items.remove(name.parse().unwrap()),
            _ => unreachable!(),
        }
        documents.push(removed);
        for value in &values {
            let mut changed = full.clone();
            *changed.pointer_mut(pointer).unwrap() = value.clone();
            documents.push(changed);
        }
    }
    documents
}

#[test]
fn schema_and_validation_agree_and_pointers_point_into_the_document() {
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let mut by_schema = 0;
    let documents = mutations();
    for document in &documents {
        let found = problems(&document.to_string());
        for problem in &found {
            assert!(document.pointer(&problem.path).is_some(), "{problem:?} of {document}");
            assert!(!problem.message.is_empty() && !problem.message.ends_with('.'), "{problem:?}");
        }
        let valid = validator.is_valid(document);
        by_schema += usize::from(!valid);
        assert!(valid || !found.is_empty(), "the schema refuses what validation accepts: {document}");
        let shape = |p: &&Problem| matches!(p.kind, MissingField | UnknownField | WrongType | UnsupportedVersion);
        if let Some(problem) = found.iter().find(shape) {
            assert!(!valid, "validation refuses the shape that the schema accepts: {problem:?} of {document}");
        }
    }
    assert!(documents.len() > 1_500 && by_schema > 800, "{} documents, {by_schema} refused", documents.len());
}

#[test]
fn history_and_archive_have_units_and_choices() {
    let seconds = |value: &str| {
        let pipeline = parse(&with("/mappings/0/keep_history", json!(value))).unwrap();
        pipeline.mappings[0].keep_history.as_secs()
    };
    assert_eq!(["0s", "90s", "5m", "2h", "7d", "3650d"].map(seconds), [0, 90, 300, 7_200, 604_800, 315_360_000]);
    check_each(&[
        ("/keep_history", json!("3651d"), Limit, "/keep_history", "at most `3650d`"),
        ("/keep_history", json!("7"), InvalidValue, "/keep_history", ""),
        ("/keep_history", json!("-7d"), InvalidValue, "/keep_history", ""),
        ("/keep_history", json!("1w"), InvalidValue, "/keep_history", ""),
        ("/keep_history", json!(7), WrongType, "/keep_history", ""),
        ("/when_removed", json!("keep"), InvalidValue, "/when_removed", "keep_rows"),
    ]);
    let canonical = |document: &str| parse(document).unwrap().mappings[0].canonical.clone();
    for (field, value) in [("keep_history", "7d"), ("when_removed", "keep_rows")] {
        let changed = with(&format!("/mappings/0/{field}"), json!(value));
        assert_eq!(canonical(&changed), canonical(&base().to_string()), "it rebuilds no table");
    }
}
