//! Whole statements of people: which of them pass, and what they read.

use std::collections::BTreeSet;

use duckdb::Connection;
use lakemill::sql::statement::{Analysis, Refusal, analyse};

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

/// The texts of a file, which are parted by lines of `%%`.
fn texts(file: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/sql").join(file);
    let whole = std::fs::read_to_string(path).unwrap();
    whole.strip_suffix('\n').unwrap().split("\n%%\n").map(str::to_owned).collect()
}

fn check(connection: &mut Connection, sql: &str) -> Result<Analysis, Refusal> {
    analyse(connection, sql, &|name| matches!(name, "t" | "u")).unwrap()
}

/// Runs a statement that passed to its end.
fn run(connection: &Connection, found: &Analysis) -> Result<(), duckdb::Error> {
    let mut statement = connection.prepare(&found.text)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

#[test]
fn good_statements_pass_run_and_tell_their_tables() {
    let mut connection = locked(TABLES);
    let texts = texts("statements.txt");
    assert!(texts.len() >= 80, "{}", texts.len());
    let mut wrong = Vec::new();
    for text in &texts {
        let (tables, sql) = text.split_once('|').unwrap();
        let expected: BTreeSet<String> = tables.split_whitespace().map(str::to_owned).collect();
        match check(&mut connection, sql) {
            Err(refusal) => wrong.push(format!("{sql}\n  refused: {refusal:?}")),
            Ok(found) if found.tables != expected => wrong.push(format!("{sql}\n  reads {:?}", found.tables)),
            Ok(found) => {
                if let Err(error) = run(&connection, &found) {
                    wrong.push(format!("{sql}\n  fails: {error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hostile_statements_are_refused_and_leave_nothing_behind() {
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
            Err(refusal) => println!("{sql}\n    {:?} {} {:?}", refusal.kind, refusal.message, refusal.position),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(&connection), untouched);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.csv"]);
}
