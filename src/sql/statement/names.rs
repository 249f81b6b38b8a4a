//! The names that statements may use besides those of expressions: functions, relations, types.
//!
//! Invariant: each function was reviewed. It computes only from its arguments, the time, randomness or the rows; it reads no
//! file, environment, setting or catalog, changes nothing, and doesn't wait.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::sql::names::{AGGREGATES, FunctionClass, known};

static FUNCTIONS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| statement_functions().collect());

/// Table functions, which `FROM` may call.
pub const TABLE_FUNCTIONS: &[&str] = &["generate_series", "json_each", "json_tree", "range", "unnest"];
/// Names (quoted or not) that DuckDB resolves as function calls if there is no such column.
pub const VALUE_FUNCTIONS: &[(&str, &str)] = &[
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
/// DuckDB's schemas and databases, besides those with a prefix of [`SYSTEM_PREFIXES`].
const SYSTEM_SCHEMAS: &[&str] = &["main", "memory", "system", "temp"];
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
pub fn statement_functions() -> impl Iterator<Item = &'static str> {
    include_str!("functions.txt").lines()
}

/// Every function that a statement may use outside of `FROM`.
pub fn functions() -> impl Iterator<Item = &'static str> {
    crate::sql::names::functions().chain(AGGREGATES.iter().copied()).chain(statement_functions())
}

/// Whether statements may use a function, given in lower case.
pub fn is_allowed(name: &str) -> bool {
    known(name) == FunctionClass::Allowed || AGGREGATES.contains(&name) || FUNCTIONS.contains(name)
}

/// Names that call a refused function if no column has them.
pub fn refused_values() -> impl Iterator<Item = &'static str> {
    VALUE_FUNCTIONS.iter().filter(|(_, function)| !is_allowed(function)).map(|(name, _)| *name)
}

/// Whether a name without parentheses (such as `current_date`) may call a function whose result changes between runs.
pub fn is_changing_value(name: &str) -> bool {
    VALUE_FUNCTIONS
        .iter()
        .any(|(value, function)| value.eq_ignore_ascii_case(name) && known(function) == FunctionClass::Changing)
}

/// Whether DuckDB has a system relation of this name (in lower case).
pub fn is_system(name: &str) -> bool {
    SYSTEM_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether DuckDB has a schema or a database of this name (in lower case), so that no pipeline's tables can be in it.
pub fn is_system_schema(name: &str) -> bool {
    is_system(name) || SYSTEM_SCHEMAS.contains(&name)
}

/// Whether DuckDB could resolve this relation name as a file or a URL.
pub fn is_file(name: &str) -> bool {
    name.contains(['/', '\\', '.', '*', '?', '[', ':', '\'', '"', '~', '%'])
}
