//! DuckDB as a child opens it: nothing but its folder, and no setting to change.

use std::path::Path;

use duckdb::{Config, Connection};

use crate::sql::query::literal;

/// Deepest nesting that DuckDB parses outside `json_serialize_sql`; above what the allow-list lets through.
const PARSER_DEPTH_MAX: usize = 1_000;

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
    connection.execute_batch(&format!(
        "SET temp_directory = '';
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
