//! The names that statements may use besides those of expressions: functions, relations, types.
//!
//! Invariant: each function was reviewed. It computes only from its arguments, the time, randomness or the rows; it reads no
//! file, environment, setting or catalog, changes nothing, and doesn't wait.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::sql::names::{AGGREGATES, Known, known};

static FUNCTIONS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| own_functions().collect());

/// Table functions, which `FROM` may call.
pub const TABLE_FUNCTIONS: &[&str] = &["generate_series", "json_each", "json_tree", "range", "unnest"];
/// Names (quoted or not) that DuckDB resolves as function calls if there is no such column.
const VALUE_FUNCTIONS: &[(&str, &str)] = &[
    ("current_catalog", "current_catalog"),
    ("current_date", "current_date"),
    ("current_role", "current_role"),
    ("current_schema", "current_schema"),
    ("current_time", "get_current_time"),
    ("current_timestamp", "get_current_timestamp"),
    ("current_user", "current_user"),
    ("localtime", "current_localtime"),
    ("localtimestamp", "current_localtimestamp"),
    ("session_user", "session_user"),
    ("user", "user"),
];
/// Prefixes of DuckDB's catalog and settings.
const SYSTEM_PREFIXES: &[&str] = &["duckdb_", "information_schema", "pg_", "pragma_", "sqlite_"];
/// Types that the parser doesn't resolve itself.
pub const NAMED_TYPES: &[&str] = &["bitstring", "enum", "json", "list", "oid", "time_ns", "varbinary", "varint"];
/// Types that the parser knows.
pub const TYPES: &[&str] = &[
    "ARRAY",
    "BIGINT",
    "BIGNUM",
    "BIT",
    "BLOB",
    "BOOLEAN",
    "CHAR",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "ENUM",
    "FLOAT",
    "HUGEINT",
    "INTEGER",
    "INTEGER_LITERAL",
    "INTERVAL",
    "LIST",
    "MAP",
    "NULL",
    "SMALLINT",
    "STRING_LITERAL",
    "STRUCT",
    "TIME",
    "TIME WITH TIME ZONE",
    "TIME_NS",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TINYINT",
    "UBIGINT",
    "UHUGEINT",
    "UINTEGER",
    "UNION",
    "USMALLINT",
    "UTINYINT",
    "UUID",
    "VARCHAR",
];

/// Scalar functions and macros that statements may use and expressions may not, in ascending order.
fn own_functions() -> impl Iterator<Item = &'static str> {
    include_str!("functions.txt").lines()
}

/// Every function that a statement may use outside of `FROM`.
pub fn functions() -> impl Iterator<Item = &'static str> {
    crate::sql::names::functions().chain(AGGREGATES.iter().copied()).chain(own_functions())
}

/// Whether statements may use a function, given in lower case.
pub fn is_allowed(name: &str) -> bool {
    known(name) == Known::Allowed || AGGREGATES.contains(&name) || FUNCTIONS.contains(name)
}

/// Names that call a refused function if no column has them.
pub fn refused_values() -> impl Iterator<Item = &'static str> {
    VALUE_FUNCTIONS.iter().filter(|(_, function)| !is_allowed(function)).map(|(name, _)| *name)
}

/// Whether DuckDB has a system relation of this name (in lower case).
pub fn is_system(name: &str) -> bool {
    SYSTEM_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether DuckDB could resolve this relation name as a file or a URL.
pub fn is_file(name: &str) -> bool {
    name.contains(['/', '\\', '.', '*', '?', '[', ':', '\'', '"', '~', '%'])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sql::query::identifier;

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
        let names: Vec<_> = own_functions().collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(names.iter().all(|name| known(name) != Known::Allowed && !AGGREGATES.contains(name)));
    }

    /// Asks the database which bare names it resolves as functions.
    #[test]
    fn every_bare_function_name_is_known() {
        let database = duckdb::Connection::open_in_memory().unwrap();
        let keywords = "SELECT string_agg(DISTINCT keyword_name, chr(10)) FROM duckdb_keywords()";
        let mut names = database_functions();
        names.extend(text(&database, keywords).unwrap().lines().map(str::to_owned));
        // `current_time` calls `get_current_time`, `localtime` calls `current_localtime`.
        let inner =
            |name: &String| Some(name.strip_prefix("get_").or_else(|| name.strip_prefix("current_"))?.to_owned());
        names.extend(names.clone().iter().filter_map(inner));
        let binds = |name: &&String| text(&database, &format!("SELECT typeof({})", identifier(name))).is_ok();
        let found: BTreeSet<&str> = names.iter().filter(binds).map(String::as_str).collect();
        assert_eq!(found, VALUE_FUNCTIONS.iter().map(|(name, _)| *name).collect());
        for (name, function) in VALUE_FUNCTIONS {
            let called = text(&database, &format!("SELECT typeof({function}())")).unwrap();
            assert_eq!(text(&database, &format!("SELECT typeof({name})")).unwrap(), called, "{name}");
        }
        let refused: Vec<_> = refused_values().collect();
        assert_eq!(
            refused,
            ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"]
        );
    }

    #[test]
    fn every_function_of_the_database_is_either_allowed_or_reviewed_and_refused() {
        let refused: BTreeSet<String> =
            include_str!("../../../testdata/sql/refused_functions.txt").lines().map(str::to_owned).collect();
        let allowed: BTreeSet<String> =
            functions().chain(TABLE_FUNCTIONS.iter().copied()).map(str::to_lowercase).collect();
        let there: BTreeSet<String> = database_functions().iter().map(|name| name.to_lowercase()).collect();
        let new: Vec<_> = there.difference(&allowed).filter(|name| !refused.contains(*name)).collect();
        assert!(new.is_empty(), "review these, then allow or refuse them:\n{new:?}");
        let gone: Vec<_> = allowed.union(&refused).filter(|name| !there.contains(*name)).collect();
        assert!(gone.is_empty(), "the database has no such functions:\n{gone:?}");
        assert!(allowed.is_disjoint(&refused), "{:?}", allowed.intersection(&refused).collect::<Vec<_>>());
    }
}
