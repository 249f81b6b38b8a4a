//! Valid documents, and documents with each possible problem.

use std::fmt::Write;
use std::path::PathBuf;

use super::limits::{DEPTH_MAX, EXPANDED_BYTES_MAX, NODES_MAX, YAML_BYTES_MAX};
use super::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/dashboards")
}

/// The problems of a text, one per line.
fn shown(text: &[u8]) -> String {
    let mut shown = String::new();
    for DashboardProblem { kind, message, path, line, column } in examine(text).problems {
        writeln!(shown, "> {line}:{column} {} `{path}` {message}", kind.as_str()).unwrap();
    }
    shown
}

fn kinds(text: &[u8]) -> Vec<DashboardProblemKind> {
    examine(text).problems.into_iter().map(|problem| problem.kind).collect()
}

#[test]
fn invalid_documents_report_problems_with_line_and_column() {
    let path = folder().join("bad.txt");
    let file = std::fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    let mut count = 0;
    for case in file.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let expected_bytes: usize = rest.split_inclusive('\n').take_while(|l| l.starts_with("> ")).map(str::len).sum();
        let text = &rest[expected_bytes..];
        let found = shown(text.as_bytes());
        assert!(!found.is_empty(), "{name}");
        write!(written, "=== {name}\n{found}{text}").unwrap();
        count += 1;
    }
    assert!(count >= 60, "{count}");
    assert_same(&written, &file);
}

/// Shows the first line that differs.
fn assert_same(found: &str, expected: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of bad.txt", number + 1);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn valid_documents_have_no_problems() {
    for entry in std::fs::read_dir(folder().join("good")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(shown(&text), "", "{}", path.display());
        assert_eq!(examine(&text).warnings, [], "{}", path.display());
    }
    assert_eq!(shown(TEMPLATE.as_bytes()), "");
}

#[test]
fn oversized_text_is_rejected_before_expansion() {
    let head = "version: 2\ntitle: T\npanels: []\n";
    let mut bomb = String::from("x-a: &a [ a, a, a, a, a, a, a, a, a, a ]\n");
    for (name, before) in ('b'..='i').zip('a'..='h') {
        let aliases = vec![format!("*{before}"); 10].join(", ");
        writeln!(bomb, "x-{name}: &{name} [ {aliases} ]").unwrap();
    }
    let long = "y".repeat(100_000);
    let merges = (0..40).fold(String::from("x-m0: &m0 { a: 1, b: 2 }\n"), |mut text, n| {
        writeln!(text, "x-m{}: &m{} {{ <<: *m{n}, l{n}: *m{n}, r{n}: *m{n} }}", n + 1, n + 1).unwrap();
        text
    });
    for (what, text) in [
        ("an alias bomb", bomb),
        ("a bomb of merges", merges),
        ("a long text by many aliases", format!("x-a: &a {long}\nx-b: [ {} ]\n", vec!["*a"; 200].join(", "))),
        ("300 KiB", format!("# {}\n", "x".repeat(300 << 10))),
        ("many nodes", format!("x-a: [{}]\n", vec!["1"; NODES_MAX + 1].join(","))),
        ("many nodes in a block", "- 1\n".repeat(YAML_BYTES_MAX / 4 - 30)[..].to_owned()),
        ("deep lists", format!("x-a: {}{}\n", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1))),
        ("very deep lists", format!("x-a: {}\n", "[".repeat(100_000))),
        ("deep mappings", (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
        (
            "deep aliases",
            (0..40).fold("x-0: &a0 [ 1 ]\n".to_owned(), |t, n| format!("{t}x-{}: &a{} [ *a{n} ]\n", n + 1, n + 1)),
        ),
        ("a long name", format!("{}: 1\n", "n".repeat(1_000))),
    ] {
        let text = if text.starts_with('-') { text } else { format!("{head}{text}") };
        let kinds = kinds(text.as_bytes());
        let expected =
            if what == "many nodes in a block" { DashboardProblemKind::WrongType } else { DashboardProblemKind::Limit };
        // Parsers report excessive nesting in different words.
        assert!(
            kinds == [expected] || (what.contains("deep") && kinds == [DashboardProblemKind::Syntax]),
            "{what}: {kinds:?}"
        );
    }
    const { assert!(EXPANDED_BYTES_MAX < 100_000 * 200) };
}

/// Many merges of maps that are small individually but large in total.
#[test]
fn merges_are_bounded_in_sum_before_they_are_expanded() {
    let filled = |mut text: String, more: &str| {
        while text.len() + more.len() <= YAML_BYTES_MAX {
            text.push_str(more);
        }
        text
    };
    let chain = |link: fn(usize) -> String| {
        let mut text = String::from("x-a:\n- &m0 {a: }\n");
        for at in 0.. {
            let more = link(at);
            if text.len() + more.len() > YAML_BYTES_MAX {
                return text;
            }
            text.push_str(&more);
        }
        text
    };
    let members = |count: usize| (0..count).map(|at| format!("k{at}: ")).collect::<Vec<_>>().join(", ");
    for (what, text) in [
        (
            "a chain of maps of which each has one member more",
            chain(|at| format!("- &m{} {{<<: *m{at}, b{at}: }}\n", at + 1)),
        ),
        (
            "a chain in which each map merges the last two",
            chain(|at| format!("- &m{} {{<<: [*m{at}, *m{}], b{at}: }}\n", at + 1, at.saturating_sub(1))),
        ),
        ("one map, merged often", filled(format!("x-a: &a {{{}}}\nx-b:\n", members(5_000)), "- {<<: *a}\n")),
        ("one map, merged often into one", filled(format!("x-a: &a {{{}}}\nx-b:\n", members(5_000)), " <<: *a\n")),
        ("a list of one map many times, merged often", {
            let maps = vec!["*a"; 10_000].join(", ");
            filled(format!("x-a: &a {{{}}}\nx-l: &l [{maps}]\nx-b:\n", members(2)), "- {<<: *l}\n")
        }),
        ("a list of empty maps, merged often", {
            let maps = vec!["*a"; 40_000].join(",");
            filled(format!("x-a: &a {{}}\nx-l: &l [{maps}]\nx-b:\n"), "- {<<: *l}\n")
        }),
        (
            "merges within merges",
            filled(format!("x-a: &a {{{}}}\nx-b:\n", members(5_000)), "- {<<: {<<: {<<: {<<: *a}}}}\n"),
        ),
        (
            "what is merged is in no tree, since its name is duplicated",
            filled(format!("x-a: &a {{{}}}\nx-b: 1\n", members(5_000)), "x-b: {<<: *a}\n"),
        ),
        ("long names", {
            let long = (0..200).map(|at| format!("{}{at}: ", "n".repeat(250))).collect::<Vec<_>>().join(", ");
            filled(format!("x-a: &a {{{long}}}\nx-b:\n"), "- {<<: *a}\n")
        }),
    ] {
        assert!(text.len() <= YAML_BYTES_MAX, "{what}: {}", text.len());
        let problems = examine(text.as_bytes()).problems;
        let found: Vec<_> = problems.iter().map(|p| (p.kind, p.message.contains("merges"))).collect();
        assert_eq!(found, [(DashboardProblemKind::Limit, true)], "{what}");
    }
    let few = "version: 2\ntitle: T\npanels: []\nx-a: &a {b: 1, c: 2}\nx-b: {<<: [*a, *a], d: 3}\n";
    assert_eq!(shown(few.as_bytes()), "");
}

#[test]
fn nodes_are_counted_exactly() {
    // The root, its names and values: 8; then a list with its items.
    let text = |items: usize| format!("version: 2\ntitle: T\npanels: []\nx-a: [{}]\n", vec!["1"; items].join(","));
    assert_eq!(kinds(text(NODES_MAX - 9).as_bytes()), []);
    assert_eq!(kinds(text(NODES_MAX - 8).as_bytes()), [DashboardProblemKind::Limit]);
}

#[test]
fn line_endings_of_any_system_are_accepted() {
    let text =
        "version: 2\ntitle: Täglich\nqueries:\n  q:\n    sql: |\n      SELECT 1 AS a,\n        $b AS b\npanels: []\n";
    let place = |text: &str| {
        let found = examine(text.as_bytes()).problems;
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].kind, found[0].line, found[0].column)
    };
    let expected = (DashboardProblemKind::UnknownParam, 7, 9);
    assert_eq!(place(text), expected);
    assert_eq!(place(&text.replace('\n', "\r\n")), expected);
    assert_eq!(place(&format!("\u{feff}{text}")), expected);
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let found = &examine(&latin).problems[0];
    assert_eq!((found.kind, found.line, found.column), (DashboardProblemKind::Syntax, 2, 9));
    for bytes in [&b"\xff\xfev\0e\0"[..], b"version: 2\0\n", b"\0", b"title: \x07\n"] {
        assert_ne!(kinds(bytes), [], "{bytes:?}");
    }
}

#[test]
fn words_of_other_yaml_versions_are_text() {
    let text = "version: 2\ntitle: no\nparams:\n  - { name: a, type: select, options: [ no, yes, on, off, y ], default: no }\n\
                queries:\n  on: { sql: SELECT $a AS a }\npanels:\n  - { id: no, type: table, query: on }\n";
    assert_eq!(shown(text.as_bytes()), "");
    let examined = examine(text.as_bytes());
    assert_eq!(examined.dashboard.title, "no");
    let settings =
        ParamSettings::choose(examined.dashboard.params(), &serde_json::Map::new(), day("2024-01-01")).unwrap();
    assert_eq!(settings.bound(), [("a".to_owned(), BoundValue::Text("no".into()))]);
}

fn day(text: &str) -> chrono::NaiveDate {
    text.parse().unwrap()
}

fn trips() -> ExaminedDashboard {
    examine(&std::fs::read(folder().join("good/trips.yaml")).unwrap())
}

fn columns(list: &[(&str, &str)]) -> QueryColumns {
    Ok(list.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned())).collect())
}

#[test]
fn query_columns_are_compared_with_named_columns() {
    let good = [("pickup_day", "date"), ("vendor", "string"), ("trips", "int64"), ("revenue", "decimal(38,2)")];
    let bind = |vendors: QueryColumns, daily: QueryColumns| {
        let mut examined = trips();
        examined.bind(vec![("vendors".to_owned(), vendors), ("daily".to_owned(), daily)]);
        let place = |p: DashboardProblem| (p.kind, p.path, p.line, p.message);
        examined.problems.into_iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(bind(columns(&[("value", "string")]), columns(&good)), []);
    let renamed = [("day", "date"), ("Vendor", "string"), ("trips", "string"), ("revenues", "int64")];
    let found = bind(columns(&[("vendor", "string")]), columns(&renamed));
    let brief: Vec<_> = found.iter().map(|(kind, path, line, _)| (*kind, path.as_str(), *line)).collect();
    assert_eq!(
        brief,
        [
            (DashboardProblemKind::UnknownColumn, "/params/1/options/value", 5),
            (DashboardProblemKind::UnknownColumn, "/panels/0/value/field", 14),
            (DashboardProblemKind::UnknownColumn, "/panels/1/x", 15),
            (DashboardProblemKind::TypeMismatch, "/panels/1/y/0", 15),
            (DashboardProblemKind::UnknownColumn, "/panels/1/series", 15),
            (DashboardProblemKind::UnknownColumn, "/panels/2/columns/0/field", 16),
        ]
    );
    assert!(found[1].3.ends_with("did you mean `revenues`?"), "{found:?}");
    assert!(found[4].3.ends_with("did you mean `Vendor`?"), "{found:?}");

    let mut examined = trips();
    let fault = QueryError { message: "no such table".into(), position: Some((2, 7)) };
    examined.bind(vec![("vendors".to_owned(), columns(&[("value", "x")])), ("daily".to_owned(), Err(fault))]);
    let [problem] = &examined.problems[..] else { panic!("{:?}", examined.problems) };
    assert_eq!((problem.kind, problem.line, problem.column), (DashboardProblemKind::InvalidSql, 11, 13));
}

#[test]
fn choices_are_checked_against_the_document() {
    let text = std::fs::read(folder().join("good/everything.yaml")).unwrap();
    let examined = examine(&text);
    let choose = |given: serde_json::Value| {
        let serde_json::Value::Object(given) = given else { panic!("{given}") };
        ParamSettings::choose(examined.dashboard.params(), &given, day("2024-03-31"))
    };
    let get = |given: serde_json::Value, name: &str| {
        let bound = choose(given).unwrap().bound();
        bound.into_iter().find(|(own, _)| own == name).unwrap().1
    };
    let text = |text: &str| BoundValue::Text(text.into());
    use serde_json::json;
    for (given, name, expected) in [
        (json!({}), "text", text("no")),
        (json!({ "text": null }), "text", BoundValue::Null),
        (json!({ "text": "'; DROP TABLE trips; --" }), "text", text("'; DROP TABLE trips; --")),
        (json!({}), "count", BoundValue::Integer(10)),
        (json!({ "count": 7.0 }), "count", BoundValue::Integer(7)),
        (json!({ "ratio": 2 }), "ratio", BoundValue::Float(2.0)),
        (json!({}), "kind", text("on")),
        (json!({ "kind": 2.0 }), "kind", BoundValue::Integer(2)),
        (json!({ "kind": true }), "kind", BoundValue::Boolean(true)),
        (json!({}), "several", BoundValue::List(vec![text("x")])),
        (json!({ "several": [] }), "several", BoundValue::Null),
        (json!({ "several": ["y", "x"] }), "several", BoundValue::List(vec![text("y"), text("x")])),
        (json!({}), "none", BoundValue::Null),
        (json!({ "queried": "anything" }), "queried", text("anything")),
        (json!({}), "day", BoundValue::Date(day("2024-03-01"))),
        (json!({ "day": "yesterday" }), "day", BoundValue::Date(day("2024-03-30"))),
        (json!({ "day": "2013-05-06" }), "day", BoundValue::Date(day("2013-05-06"))),
        (json!({}), "period_start", BoundValue::Date(day("2013-01-01"))),
        (json!({ "period": "last_7_days" }), "period_start", BoundValue::Date(day("2024-03-25"))),
        (
            json!({ "period": { "start": "2013-02-03", "end": "2013-02-03" } }),
            "period_end",
            BoundValue::Date(day("2013-02-03")),
        ),
        (
            json!({ "period": { "start": "x", "end": "y", "preset": "today" } }),
            "period_end",
            BoundValue::Date(day("2024-03-31")),
        ),
        (json!({ "period": null }), "period_end", BoundValue::Null),
        (json!({}), "other_start", BoundValue::Date(day("2023-01-01"))),
    ] {
        assert_eq!(get(given.clone(), name), expected, "{name} of {given}");
    }
    for given in [
        json!({ "texts": "x" }),
        json!({ "text": 1 }),
        json!({ "text": ["x"] }),
        json!({ "text": "a\u{0}b" }),
        json!({ "text": "x".repeat(5_000) }),
        json!({ "count": "7" }),
        json!({ "count": 1.5 }),
        json!({ "count": 0 }),
        json!({ "count": 101 }),
        json!({ "ratio": true }),
        json!({ "kind": "b" }),
        json!({ "kind": ["a"] }),
        json!({ "several": "x" }),
        json!({ "several": ["x", "z"] }),
        json!({ "several": [null] }),
        json!({ "queried": { "a": 1 } }),
        json!({ "queried": "x".repeat(5_000) }),
        json!({ "day": "2013-02-30" }),
        json!({ "day": "20130203" }),
        json!({ "day": "2009-12-31" }),
        json!({ "day": 2013 }),
        json!({ "day": "+2013-1-01" }),
        json!({ "period": "last_8_days" }),
        json!({ "period": { "start": "2013-02-03" } }),
        json!({ "period": { "start": "2013-02-03", "end": "2013-02-02" } }),
        json!({ "period": { "start": "2013-02-03", "end": "2013-02-04", "x": 1 } }),
        json!({ "period": ["2013-02-03", "2013-02-04"] }),
        json!({ "other": { "start": "2009-01-01", "end": "2011-01-01" } }),
    ] {
        let name = given.as_object().unwrap().keys().next().unwrap().clone();
        let messages = choose(given.clone()).expect_err(&given.to_string());
        assert!(messages.len() == 1 && messages[0].contains(&format!("`{name}`")), "{messages:?}");
    }
    assert_eq!(choose(json!({ "count": "7", "day": 1, "x": 1 })).unwrap_err().len(), 3);
}

#[test]
fn statements_contain_quoted_columns_and_no_values() {
    let text = "version: 2\ntitle: T\nqueries:\n  q: { sql: 'SELECT 1 AS \"a\"\"b\"; -- end' }\npanels:\n\
                \x20 - { id: k, type: kpi, query: q, value: { field: 'a\"b', aggregate: count_distinct } }\n\
                \x20 - { id: f, type: kpi, query: q, value: { field: 'a\"b' } }\n\
                \x20 - { id: p, type: pivot, query: q, rows: [ 'a\"b' ], values: [ { field: 'a\"b' } ] }\n\
                \x20 - { id: t, type: table, query: q }\n";
    let examined = examine(text.as_bytes());
    assert_eq!(shown(text.as_bytes()), "");
    let query = examined.dashboard.query("q").unwrap();
    let found: Vec<String> = examined.dashboard.panels().map(|panel| panel_sql(panel, query)).collect();
    let inner = "SELECT 1 AS \"a\"\"b\"";
    assert_eq!(
        found,
        [
            format!("SELECT count(DISTINCT \"a\"\"b\") AS \"a\"\"b\" FROM (\n{inner}\n) AS q"),
            format!("SELECT * FROM (\n{inner}\n) AS q LIMIT 1"),
            format!(
                "SELECT \"a\"\"b\", sum(\"a\"\"b\") AS \"sum(a\"\"b)\" FROM (\n{inner}\n) AS q GROUP BY 1 ORDER BY 1"
            ),
            inner.to_owned(),
        ]
    );
}

#[test]
fn comparison_moves_only_one_range() {
    let examined = trips();
    let dashboard = &examined.dashboard;
    let settings = ParamSettings::choose(dashboard.params(), &serde_json::Map::new(), day("2024-03-31")).unwrap();
    let panel = dashboard.panels().next().unwrap();
    let (moved, range) = dashboard.compared(panel, &settings).unwrap();
    assert_eq!((range.start, range.end), (day("2024-02-01"), day("2024-03-01")));
    assert_eq!(moved.bound()[2..], settings.bound()[2..]);
    let given = serde_json::json!({ "period": "all" }).as_object().unwrap().clone();
    let settings = ParamSettings::choose(dashboard.params(), &given, day("2024-03-31")).unwrap();
    assert!(dashboard.compared(panel, &settings).is_none());
    assert_eq!(dashboard.columns_needed("daily"), ["pickup_day", "revenue", "trips", "vendor"]);
}

#[test]
fn unused_parts_give_warnings() {
    let text =
        "version: 2\ntitle: T\nparams: [ { name: a, type: text } ]\nqueries:\n  q: { sql: SELECT 1 }\npanels: []\n";
    let examined = examine(text.as_bytes());
    assert_eq!(examined.problems, []);
    let places: Vec<_> = examined.warnings.iter().map(|w| (w.kind, w.path.as_str(), w.line)).collect();
    assert_eq!(
        places,
        [(DashboardProblemKind::Unused, "/params/0", 3), (DashboardProblemKind::Unused, "/queries/q", 5)]
    );
}

#[test]
fn published_schema_accepts_valid_documents() {
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    let document: DashboardDocument = serde_json::from_value(serde_json::json!({
        "version": 2, "title": "T", "panels": [ { "type": "markdown", "id": "a", "text": "x" } ],
    }))
    .unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&document).unwrap()));
    assert_eq!(document.panels[0].id(), "a");
}
