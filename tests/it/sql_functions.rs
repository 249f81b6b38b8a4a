//! The functions of the database: each is allowed, or reviewed and refused.

use std::collections::BTreeSet;

use lakemill::sql::identifier;
use lakemill::sql::names::{AGGREGATES, FunctionClass, known};
use lakemill::sql::statement::names::{
    TABLE_FUNCTIONS, VALUE_FUNCTIONS, functions, refused_values, statement_functions,
};

/// The only value of a query.
fn text(database: &duckdb::Connection, sql: &str) -> duckdb::Result<String> {
    database.query_row(sql, [], |row| row.get(0))
}

fn database_functions() -> BTreeSet<String> {
    let names = "SELECT string_agg(DISTINCT function_name, chr(10)) FROM duckdb_functions()";
    let names = text(&duckdb::Connection::open_in_memory().unwrap(), names).unwrap();
    names.lines().map(str::to_owned).collect()
}

#[test]
fn list_is_sorted_and_disjoint_from_the_others() {
    let names: Vec<_> = statement_functions().collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(names.iter().all(|name| known(name) != FunctionClass::Allowed && !AGGREGATES.contains(name)));
}

/// Asks the database which bare names it resolves as functions.
#[test]
fn every_bare_function_name_is_known() {
    let database = duckdb::Connection::open_in_memory().unwrap();
    let keywords = "SELECT string_agg(DISTINCT keyword_name, chr(10)) FROM duckdb_keywords()";
    let mut names = database_functions();
    names.extend(text(&database, keywords).unwrap().lines().map(str::to_owned));
    // `current_time` calls `get_current_time`, `localtime` calls `current_localtime`.
    let inner = |name: &String| Some(name.strip_prefix("get_").or_else(|| name.strip_prefix("current_"))?.to_owned());
    names.extend(names.clone().iter().filter_map(inner));
    let binds = |name: &&String| text(&database, &format!("SELECT typeof({})", identifier(name))).is_ok();
    let found: BTreeSet<&str> = names.iter().filter(binds).map(String::as_str).collect();
    assert_eq!(found, VALUE_FUNCTIONS.iter().map(|(name, _)| *name).collect());
    for (name, function) in VALUE_FUNCTIONS {
        let called = text(&database, &format!("SELECT typeof({function}())")).unwrap();
        assert_eq!(text(&database, &format!("SELECT typeof({name})")).unwrap(), called, "{name}");
    }
    let refused: Vec<_> = refused_values().collect();
    assert_eq!(refused, ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"]);
}

#[test]
fn every_function_of_the_database_is_either_allowed_or_reviewed_and_refused() {
    let refused: BTreeSet<String> =
        include_str!("../../testdata/sql/refused_functions.txt").lines().map(str::to_owned).collect();
    let allowed: BTreeSet<String> = functions().chain(TABLE_FUNCTIONS.iter().copied()).map(str::to_lowercase).collect();
    let there: BTreeSet<String> = database_functions().iter().map(|name| name.to_lowercase()).collect();
    let new: Vec<_> = there.difference(&allowed).filter(|name| !refused.contains(*name)).collect();
    assert!(new.is_empty(), "review these, then allow or refuse them:\n{new:?}");
    let gone: Vec<_> = allowed.union(&refused).filter(|name| !there.contains(*name)).collect();
    assert!(gone.is_empty(), "the database has no such functions:\n{gone:?}");
    assert!(allowed.is_disjoint(&refused), "{:?}", allowed.intersection(&refused).collect::<Vec<_>>());
}
