//! Opens DuckDB for statements: it reads one folder and locks its settings.

use std::path::Path;

use duckdb::{Config, Connection};
use lakemill::sql::bounds::PARSER_DEPTH_MAX;
use lakemill::sql::errors::EngineFailure;
use lakemill::sql::query::literal;
use lakemill::sql::statement::{SERIALIZE, SqlParser, refused_values};

use super::errors::{REFUSED, failure};

/// Opens an instance that reads files below `folder` only. It caches no files: they are local, and a child serves one
/// unit of work.
///
/// # Errors
/// Errors of DuckDB.
pub fn open(folder: &Path, memory_bytes: u64, threads: usize) -> duckdb::Result<Connection> {
    let config = Config::default()
        .max_memory(&format!("{memory_bytes}B"))?
        .threads(i64::try_from(threads).unwrap_or(1))?
        .enable_autoload_extension(false)?
        .with("autoinstall_known_extensions", "false")?
        .with("allow_community_extensions", "false")?;
    let connection = Connection::open_in_memory_with_flags(config)?;
    let folder = literal(&folder.to_string_lossy());
    // A bare name calls such a function unless a column has the name, which only DuckDB's binder knows. It then finds a
    // macro that takes other arguments, and refuses the statement.
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

/// Parses statements on a connection.
pub struct DuckParser<'a>(pub &'a mut Connection);

impl SqlParser for DuckParser<'_> {
    fn tree(&self, sql: &str) -> Result<String, EngineFailure> {
        self.0.query_row(SERIALIZE, [sql], |row| row.get(0)).map_err(|error| failure("parsing a statement", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_reads_no_other_folder_and_locks_its_settings() {
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
