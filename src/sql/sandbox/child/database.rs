//! DuckDB as a child opens it: nothing but its folder, and no setting to change.

use std::path::Path;

use duckdb::{Config, Connection};

use super::errors::failure;
use crate::sql::errors::EngineFailure;
use crate::sql::query::literal;
use crate::sql::statement::{Parser, SERIALIZE, refused_values};

/// Deepest nesting that DuckDB parses outside `json_serialize_sql`; above what the allow-list lets through.
const PARSER_DEPTH_MAX: usize = 1_000;

/// The parameter of macros that stand in for functions which may not be used.
const REFUSED: &str = "lakemill_refused";

/// The function that may not be used of which DuckDB's `message` tells.
pub fn refused_function(message: &str) -> Option<&'static str> {
    refused_values().find(|name| {
        message.contains(&format!("{name}({REFUSED})")) || message.contains(&format!("\"{name}\"({REFUSED})"))
    })
}

/// Opens an instance that reads files below `folder` alone. It keeps no copies of what it read: the files lie on this
/// machine, and a child lives for one unit of work.
///
/// # Errors
/// As DuckDB has them.
pub fn open(folder: &Path, memory_bytes: u64, threads: usize) -> duckdb::Result<Connection> {
    let config = Config::default()
        .max_memory(&format!("{memory_bytes}B"))?
        .threads(i64::try_from(threads).unwrap_or(1))?
        .enable_autoload_extension(false)?
        .with("autoinstall_known_extensions", "false")?
        .with("allow_community_extensions", "false")?;
    let connection = Connection::open_in_memory_with_flags(config)?;
    let folder = literal(&folder.to_string_lossy());
    // A bare name is a call of such a function unless a column has it, which only DuckDB's binder knows: there it finds
    // a macro that takes other arguments, and refuses the statement.
    let refused: String =
        refused_values().map(|name| format!("CREATE MACRO {name}({REFUSED}) AS {REFUSED};\n")).collect();
    connection.execute_batch(&format!(
        "{refused}
         SET temp_directory = '';
         SET TimeZone = 'UTC';
         SET Calendar = 'gregorian';
         SET enable_external_file_cache = false;
         SET max_expression_depth = {PARSER_DEPTH_MAX};
         SET allowed_directories = [{folder}];
         SET enable_external_access = false;
         SET lock_configuration = true;"
    ))?;
    Ok(connection)
}

impl Parser for Connection {
    fn tree(&self, sql: &str) -> Result<String, EngineFailure> {
        self.query_row(SERIALIZE, [sql], |row| row.get(0)).map_err(|error| failure("parsing a statement", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_alone_reads_no_other_folder_and_lets_nobody_change_its_settings() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = |folder: &Path| {
            let path = folder.join("x.csv");
            std::fs::write(&path, "a\n1\n").unwrap();
            literal(&path.to_string_lossy())
        };
        let (mine, theirs) = (file(own.path()), file(other.path()));
        let database = open(own.path(), 256 << 20, 1).unwrap();
        let read = |path: &str| format!("SELECT * FROM read_csv({path})");
        database.execute_batch(&read(&mine)).unwrap();
        for sql in [
            read(&theirs),
            format!("COPY (SELECT 1) TO {theirs}"),
            format!("ATTACH {theirs}"),
            "SELECT * FROM read_text('/proc/self/environ')".into(),
            "SET enable_external_access = true".into(),
            "SET allowed_directories = ['/']".into(),
            "SET lock_configuration = false".into(),
            "SET memory_limit = '100GB'".into(),
            "INSTALL httpfs".into(),
            "LOAD httpfs".into(),
        ] {
            assert!(database.execute_batch(&sql).is_err(), "{sql}");
        }
        assert_eq!(std::fs::read_to_string(other.path().join("x.csv")).unwrap(), "a\n1\n");
    }
}
