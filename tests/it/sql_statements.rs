//! User-supplied statements: which are allowed, and the tables that they read.

use std::collections::BTreeSet;

use duckdb::Connection;
use lakemill::domain::limits::QUERY_BYTES_MAX;
use lakemill::sql::statement::{AllowedStatement, Parameters, Refusal, RefusalKind, StatementKind, analyse};
use lakemill::sql::{EngineFailure, on_deep_stack};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::child::database::DuckParser;

fn locked(setup: &str) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(setup).unwrap();
    connection
        .execute_batch("SET enable_external_access = false; SET TimeZone = 'UTC'; SET lock_configuration = true;")
        .unwrap();
    connection
}

const TABLES: &str = "
    CREATE TABLE t (a BIGINT, b VARCHAR, c DOUBLE, d DATE, l BIGINT[], s STRUCT(x BIGINT, y VARCHAR), j JSON);
    INSERT INTO t VALUES
        (1, 'one', 0.5, '2024-01-01', [1, 2], {'x': 1, 'y': 'p'}, '{\"k\": [1]}'),
        (2, 'two', 1.5, '2024-01-02', [3], {'x': 2, 'y': 'q'}, '{\"k\": [2]}'),
        (3, 'two', 2.5, '2024-02-03', [], {'x': 3, 'y': 'r'}, NULL);
    CREATE TABLE u (a BIGINT, e VARCHAR, moment TIMESTAMP);
    INSERT INTO u VALUES (1, 'x', '2024-01-01 10:00:00'), (2, 'y', '2024-01-02 11:00:00');";

/// The texts of a file, separated by lines of `%%`.
fn texts(file: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sql").join(file);
    let whole = std::fs::read_to_string(path).unwrap();
    whole.strip_suffix('\n').unwrap().split("\n%%\n").map(str::to_owned).collect()
}

fn check(connection: &mut Connection, sql: &str) -> Result<AllowedStatement, Refusal> {
    analyse(&mut DuckParser(connection), sql, &|name| matches!(name, "t" | "u")).unwrap()
}

/// Runs an allowed statement to its end.
fn run(connection: &Connection, text: &str) -> Result<(), duckdb::Error> {
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Connections with each set of the tables.
struct Worlds(Vec<(BTreeSet<String>, Connection)>);

impl Worlds {
    fn new() -> Self {
        let sets: [&[&str]; 4] = [&["t", "u"], &["t"], &["u"], &[]];
        let world = |set: &&[&str]| {
            let setup: String =
                ["t", "u"].iter().filter(|n| !set.contains(n)).map(|n| format!("DROP TABLE {n};")).collect();
            (set.iter().map(|name| name.to_string()).collect(), locked(&format!("{TABLES} {setup}")))
        };
        Self(sets.iter().map(world).collect())
    }

    /// A catalog with exactly these tables.
    fn with(&self, tables: &BTreeSet<String>) -> &Connection {
        let (_, first) = &self.0[0];
        let wanted: BTreeSet<_> = tables.iter().filter(|name| matches!(name.as_str(), "t" | "u")).cloned().collect();
        self.0.iter().find(|(set, _)| *set == wanted).map_or(first, |(_, world)| world)
    }
}

#[test]
fn valid_statements_pass_and_run_with_exactly_the_listed_tables() {
    let mut connection = locked(TABLES);
    let worlds = Worlds::new();
    let texts = texts("statements.txt");
    assert!(texts.len() >= 80, "{}", texts.len());
    let mut wrong = Vec::new();
    for text in &texts {
        let (tables, sql) = text.split_once('|').unwrap();
        let expected: BTreeSet<String> = tables.split_whitespace().map(str::to_owned).collect();
        let found = match check(&mut connection, sql) {
            Ok(found) if found.tables == expected => found,
            other => {
                wrong.push(format!("{sql}\n  {other:?}"));
                continue;
            }
        };
        if let Err(error) = run(worlds.with(&expected), &found.text) {
            wrong.push(format!("{sql}\n  fails: {error}"));
        }
        for name in &expected {
            let fewer = expected.iter().filter(|other| *other != name).cloned().collect();
            if run(worlds.with(&fewer), &found.text).is_ok() {
                wrong.push(format!("{sql}\n  runs without `{name}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hostile_statements_are_refused_without_side_effects() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.csv");
    std::fs::write(&file, "password\n1\n").unwrap();
    let before = "SELECT string_agg(name || value, ',' ORDER BY name) FROM duckdb_settings()";
    let state = |connection: &Connection| -> (String, i64, i64) {
        let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let settings = connection.query_row(before, [], |row| row.get(0)).unwrap();
        (settings, one("SELECT sum(a) + count(*) FROM t"), one("SELECT count(*) FROM duckdb_tables()"))
    };
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(TABLES).unwrap();
    let untouched = state(&connection);
    let texts = texts("hostile_statements.txt");
    assert!(texts.len() >= 80, "{}", texts.len());
    let mut wrong = Vec::new();
    for text in &texts {
        let sql = text.replace("FOLDER", folder.path().to_str().unwrap());
        match check(&mut connection, &sql) {
            Ok(found) => wrong.push(format!("{sql}\n  passed: {found:?}")),
            Err(refusal) if refusal.message.is_empty() || refusal.message.contains("LINE") => {
                wrong.push(format!("{sql}\n  {refusal:?}"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(&connection), untouched);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.csv"]);
}

#[test]
fn deep_and_long_statements_are_refused_before_a_stack_overflows() {
    let mut connection = locked(TABLES);
    let repeated = |start: &str, part: &str, end: &str| {
        let times = (QUERY_BYTES_MAX - start.len()) / (part.len() + end.len());
        format!("{start}{}{}", part.repeat(times), end.repeat(times))
    };
    for sql in [
        " ".repeat(QUERY_BYTES_MAX + 1),
        repeated("SELECT ", "(", ""),
        repeated("SELECT ", "NOT ", ""),
        repeated("SELECT 1", " + 1", ""),
        repeated("SELECT 1", "::int", ""),
        repeated("SELECT 1", "[1]", ""),
        repeated("SELECT - 1", " - - 1", ""),
        repeated("SELECT '' ", "|| '' ", ""),
        repeated("SELECT j", "->'x'", ""),
        repeated("SELECT a", ".upper()", ""),
        repeated("FROM t", ",t", ""),
        repeated("FROM t", " JOIN t USING(a)", ""),
        repeated("FROM ", "t JOIN ", ""),
        repeated("SELECT CASE WHEN true THEN ", "CASE WHEN true THEN ", ""),
        repeated("SELECT 1::", "STRUCT(x ", ""),
        repeated("SELECT 1::int", "[]", ""),
        repeated("EXPLAIN ", "EXPLAIN ", ""),
        repeated("", "DESCRIBE ", ""),
        repeated("SELECT ", "/*", "*/"),
        repeated("", ";", ""),
        repeated("SELECT ", "[x FOR x IN ", ""),
        format!("SELECT {}1{}", "(SELECT ".repeat(190), ")".repeat(190)),
        format!("SELECT 1{}", " + 1".repeat(900)),
        format!("FROM t{}", " JOIN t USING (a)".repeat(300)),
        format!("FROM t{}", ", t".repeat(900)),
        format!("SELECT {}a FROM t", "- ".repeat(900)),
    ] {
        let refusal = check(&mut connection, &sql).expect_err(&sql[..60]);
        assert!(refusal.message.len() < 1_000, "{}", refusal.message);
    }
}

#[test]
fn long_and_deep_statements_within_limits_pass_and_run() {
    let mut connection = locked(TABLES);
    for sql in [
        format!("SELECT * FROM t WHERE a IN ({}1)", "1, ".repeat(20_000)),
        format!("SELECT {}1", "1, ".repeat(2_000)),
        format!("SELECT a FROM t WHERE true {}", "AND a > 0 ".repeat(2_000)),
        format!("SELECT a{} FROM t", " + a".repeat(230)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(2_000)),
        format!("{}SELECT 1{}", "FROM (".repeat(60), ")".repeat(60)),
        format!("WITH {} SELECT 1", (0..200).map(|n| format!("x{n} AS (FROM t)")).collect::<Vec<_>>().join(", ")),
        format!("VALUES {}(1)", "(1), ".repeat(5_000)),
        format!("SELECT '{}'", "x".repeat(QUERY_BYTES_MAX - 20)),
    ] {
        let found = check(&mut connection, &sql).unwrap_or_else(|refusal| panic!("{}: {refusal:?}", &sql[..60]));
        let error = |error: duckdb::Error| EngineFailure::Other(error.to_string());
        on_deep_stack(|| run(&locked(TABLES), &found.text).map_err(error)).unwrap();
    }
}

#[test]
fn kind_and_parameters_of_a_statement_are_returned() {
    let mut connection = locked(TABLES);
    let named = |names: &[&str]| Parameters::Named(names.iter().map(|name| name.to_string()).collect());
    for (sql, kind, parameters) in [
        ("SELECT 1", StatementKind::Select, Parameters::None),
        ("FROM (VALUES (1))", StatementKind::Select, Parameters::None),
        ("FROM (DESCRIBE t)", StatementKind::Select, Parameters::None),
        ("VALUES (?)", StatementKind::Values, Parameters::Positional(1)),
        ("DESCRIBE t", StatementKind::Describe, Parameters::None),
        ("SUMMARIZE t", StatementKind::Summarize, Parameters::None),
        ("SHOW TABLES", StatementKind::Show, Parameters::None),
        ("EXPLAIN VALUES (1)", StatementKind::Explain, Parameters::None),
        ("SELECT ?, ?", StatementKind::Select, Parameters::Positional(2)),
        ("SELECT $2, $1, $1", StatementKind::Select, Parameters::Positional(2)),
        (
            "FROM t WHERE a > $least AND b = $b AND c < $LEAST LIMIT $n",
            StatementKind::Select,
            named(&["least", "b", "n"]),
        ),
    ] {
        let found = check(&mut connection, sql).unwrap();
        assert_eq!((found.kind, &found.parameters), (kind, &parameters), "{sql}");
        let names = connection.prepare(&found.text).unwrap().parameter_count();
        assert_eq!(found.parameters.names().len(), names, "{sql}");
        assert_eq!(found.lists_tables, kind == StatementKind::Show, "{sql}");
    }
    assert!(check(&mut connection, "FROM t, (SHOW TABLES)").unwrap().lists_tables);
}

#[test]
fn only_the_statement_itself_is_prepared() {
    let mut connection = locked(TABLES);
    for (sql, text) in [
        ("  SELECT 1 ; -- the end", "  SELECT 1"),
        ("/* é; */\nexplain\n/*b*/ FROM t;", "        \nEXPLAIN\n      FROM t"),
        ("-- a\nSELECT ';' ;", "    \nSELECT ';'"),
        ("EXPLAIN/**/SELECT 1", "EXPLAIN    SELECT 1"),
    ] {
        assert_eq!(check(&mut connection, sql).unwrap().text, text);
    }
}

#[test]
fn refusals_give_position_and_alternative() {
    let mut connection = locked(TABLES);
    for (sql, kind, part, place) in [
        ("\n COPY t TO 'x'", RefusalKind::Statement, "`COPY` can't be used", Some((2, 2))),
        ("SELECT 1;\nDROP TABLE t", RefusalKind::Statement, "several statements", Some((1, 9))),
        ("WITH x AS (SELECT 1) DELETE FROM t", RefusalKind::Statement, "`DELETE` can't be used", Some((1, 22))),
        ("WITH x AS (DELETE FROM t) FROM x", RefusalKind::Statement, "`WITH`", Some((1, 12))),
        ("SELECT 1 INTO x", RefusalKind::Statement, "`INTO`", Some((1, 10))),
        ("SELECT 'é',\n  uper(b) FROM t", RefusalKind::Function, "did you mean `upper`?", Some((2, 3))),
        ("EXPLAIN SELECT uper(b) FROM t", RefusalKind::Function, "did you mean `upper`?", Some((1, 16))),
        ("FROM rnge(3)", RefusalKind::Function, "did you mean `range`?", Some((1, 6))),
        ("FROM 'a.csv'", RefusalKind::Table, "a query can't read files", Some((1, 6))),
        ("FROM pg_class", RefusalKind::Table, "SHOW TABLES", Some((1, 6))),
        ("FROM x.y.t", RefusalKind::Table, "`y.t`", Some((1, 6))),
        ("FROM temp.t", RefusalKind::Table, "`temp` is a name of the database itself", Some((1, 6))),
        ("PIVOT t ON b USING sum(a)", RefusalKind::Clause, "ON column IN", Some((1, 1))),
        ("FROM t AT (VERSION => 1)", RefusalKind::Clause, "`AT`", Some((1, 6))),
        ("SELECT DEFAULT", RefusalKind::Clause, "`DEFAULT`", None),
        ("SELECT a FROM t WHERE", RefusalKind::Syntax, "syntax error", None),
        ("WITH x AS (\nINSERT INTO t VALUES (1)) FROM x", RefusalKind::Statement, "`WITH` supports", Some((2, 1))),
        ("RESET ALL", RefusalKind::Statement, "`RESET` can't be used", Some((1, 1))),
        ("SELECT 1 +\n* 2", RefusalKind::Syntax, "syntax error", Some((2, 3))),
        ("EXPLAIN ANALYZE FROM t", RefusalKind::Statement, "EXPLAIN", Some((1, 9))),
        ("", RefusalKind::Statement, "no statement", None),
    ] {
        let refusal = check(&mut connection, sql).expect_err(sql);
        let found = refusal.position.map(|position| (position.line, position.column));
        assert_eq!((refusal.kind, found), (kind, place), "{sql}: {refusal:?}");
        assert!(refusal.message.contains(part), "{sql}: {}", refusal.message);
    }
}

#[test]
fn known_table_may_have_any_name() {
    let mut connection = locked("CREATE TABLE pg_trips (a INT); CREATE TABLE \"x.csv\" (a INT);");
    let sql = "SELECT * FROM pg_trips, \"X.csv\"";
    assert!(check(&mut connection, sql).is_err());
    let found =
        analyse(&mut DuckParser(&mut connection), sql, &|name| matches!(name, "pg_trips" | "x.csv")).unwrap().unwrap();
    assert_eq!(found.tables, ["pg_trips", "x.csv"].map(str::to_owned).into());
    run(&connection, &found.text).unwrap();
}

#[test]
fn tables_of_other_pipelines_are_named_with_their_pipeline() {
    let mut connection = locked("CREATE TABLE t (a INT)");
    let mut found = |sql: &str| analyse(&mut DuckParser(&mut connection), sql, &|name| name == "t").unwrap();
    let sql = "WITH x AS (FROM \"my-Pipeline\".T) SELECT other.t.a FROM x, other.t JOIN main.t AS m ON true";
    let tables = found(sql).unwrap().tables;
    assert_eq!(tables, ["my-pipeline.t", "other.t", "t"].map(str::to_owned).into());
    // A CTE's name is not that of a pipeline's table.
    assert_eq!(found("WITH t AS (SELECT 1) FROM other.t").unwrap().tables, ["other.t".to_owned()].into());
    for refused in [
        "FROM a.b.t",
        "FROM memory.main.t",
        "FROM temp.t",
        "FROM system.t",
        "FROM memory.t",
        "FROM pg_catalog.pg_class",
        "FROM information_schema.tables",
        "FROM \"No slug\".t",
        "FROM \"\".\"t\"",
        "FROM other.\"x.csv\"",
        "FROM other.\"../t\"",
        "FROM other.generate_series(1, 2)",
    ] {
        assert!(found(refused).is_err(), "{refused}");
    }
}

#[test]
fn nondeterministic_statements_are_recognized() {
    let mut connection = locked(TABLES);
    let mut changes = |sql: &str| check(&mut connection, sql).expect(sql).changes;
    for sql in [
        "SELECT a, count(*) FROM t GROUP BY ALL ORDER BY 1 LIMIT 3",
        "DESCRIBE t",
        "SELECT * FROM t USING SAMPLE reservoir(5 ROWS) REPEATABLE (1)",
        "WITH x AS (SELECT a AS today FROM t) SELECT 1 FROM x",
    ] {
        assert!(!changes(sql), "{sql}");
    }
    for sql in [
        "SELECT now()",
        "SELECT a FROM t ORDER BY random()",
        "SELECT CURRENT_DATE",
        "SELECT current_timestamp, a FROM t",
        "SELECT * FROM (SELECT uuid() FROM t)",
        "SELECT ago(INTERVAL 1 DAY)",
        "SELECT * FROM t USING SAMPLE 5",
        "SELECT * FROM t TABLESAMPLE reservoir(5)",
        "SELECT a FROM t WHERE b IN (SELECT b FROM t USING SAMPLE 5)",
    ] {
        assert!(changes(sql), "{sql}");
    }
}

#[test]
fn no_pipeline_has_the_name_of_a_schema_of_the_database() {
    let mut connection = locked("");
    let names = "SELECT DISTINCT schema_name FROM duckdb_schemas() UNION SELECT database_name FROM duckdb_databases()";
    let names: Vec<String> =
        connection.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let refusal = check(&mut connection, &format!("FROM {name}.tables"));
        assert!(refusal.is_err() || name == "main", "{name}");
    }
}

#[test]
fn every_relation_of_the_database_itself_is_refused() {
    let mut connection = locked("");
    let names = "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE internal";
    let names: Vec<String> =
        connection.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let bare = name.split_once('.').unwrap().1;
        assert!(check(&mut connection, &format!("FROM {name}")).is_err(), "{name}");
        let reachable = run(&connection, &format!("FROM {bare}")).is_ok();
        assert!(!reachable || check(&mut connection, &format!("FROM {bare}")).is_err(), "{bare}");
    }
}

/// Words that mutations insert into statements.
const WORDS: &[&str] = &[
    ";",
    "--",
    "/*",
    "*/",
    "'",
    "\"",
    "$$",
    "$a$",
    "E'",
    "\\",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "::",
    "->",
    ":=",
    "*",
    "COPY t TO 'x'",
    "; DROP TABLE t",
    "FROM 'x.csv'",
    "read_text('x')",
    "FROM read_csv('x')",
    "getvariable('x')",
    "nextval('s')",
    "query('SELECT 1')",
    "duckdb_settings()",
    "pg_class",
    "EXPLAIN",
    "ANALYZE",
    "DESCRIBE",
    "SUMMARIZE",
    "SHOW TABLES",
    "WITH x AS (DELETE FROM t)",
    "WITH t AS (SELECT 1)",
    "RECURSIVE",
    "UNION ALL",
    "SELECT",
    "FROM t",
    "FROM u",
    "JOIN u",
    "main.u",
    "(FROM u)",
    "INTO z",
    "AT (VERSION => 1)",
    "PIVOT",
    "OVER ()",
    "FILTER (WHERE true)",
    "ORDER BY",
    "LIMIT 1",
    "$1",
    "$n",
    "?",
    "\u{a0}",
    "\u{3000}",
    "\u{0}",
    "é",
    "NULL",
    "1",
    "a",
    "AS",
    "LATERAL",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn mutated_statements_pass_only_as_one_statement_over_the_listed_tables(
        edits in proptest::collection::vec((any::<Index>(), proptest::collection::vec((any::<Index>(), any::<Index>(), 0..4_u8), 1..4)), 40)
    ) {
        FUZZ.with(|fuzz| {
            let Fuzz { texts, analyst, worlds } = &mut *fuzz.borrow_mut();
            for (at, edits) in edits {
                let mut sql = at.get(texts).split_once('|').unwrap().1.to_owned();
                for (place, word, how) in edits {
                    mutate(&mut sql, &place, &word, how);
                }
                let Ok(found) = check(analyst, &sql) else { continue };
                prop_assert_eq!(&check(analyst, &found.text).unwrap(), &found, "{}", &sql);
                let is_table = |name: &String| {
                    let table = name.split_once('.').map_or(name.as_str(), |(_, table)| table);
                    !table.contains(['.', '/', '\\'])
                };
                prop_assert!(found.tables.iter().all(is_table), "{:?}", found);
                let everywhere = worlds.0[0].1.prepare(&found.text).is_ok();
                let there = worlds.with(&found.tables).prepare(&found.text).is_ok();
                prop_assert!(!everywhere || there, "reads more than {:?}: {}", found.tables, sql);
                let left = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'main'";
                let left: i64 = worlds.0[0].1.query_row(left, [], |row| row.get(0)).unwrap();
                prop_assert_eq!(left, 2);
            }
            Ok(())
        })?;
    }
}

struct Fuzz {
    texts: Vec<String>,
    analyst: Connection,
    worlds: Worlds,
}

thread_local! {
    static FUZZ: std::cell::RefCell<Fuzz> = std::cell::RefCell::new(Fuzz {
        texts: texts("statements.txt"),
        analyst: locked(TABLES),
        worlds: Worlds::new(),
    });
}

/// Inserts a word into the text, removes a part, or moves one.
fn mutate(sql: &mut String, place: &Index, word: &Index, how: u8) {
    let ends: Vec<usize> = sql.char_indices().map(|(at, _)| at).chain([sql.len()]).collect();
    let (from, to) = (*place.get(&ends), *word.get(&ends));
    let (from, to) = (from.min(to), from.max(to));
    match how {
        0 => sql.insert_str(from, &format!(" {} ", word.get(WORDS))),
        1 => sql.insert_str(from, WORDS[word.index(WORDS.len())]),
        2 => {
            let end = ends.iter().copied().find(|end| *end >= to.min(from + 12)).unwrap_or(from);
            sql.replace_range(from..end, "");
        }
        3 => {
            let piece = sql[from..to].to_owned();
            sql.push_str(&piece);
        }
        _ => {
            let name = ["u", "x", "main.u", "(SELECT a FROM u)", "t, u"][word.index(5)];
            let after = sql[from..].replacen("t ", &format!("{name} "), 1);
            sql.replace_range(from.., &after);
        }
    }
}
