//! Defines views over the files of a child's folder.
//!
//! Invariant: a view reads only the listed files below the folder, and its columns have the declared order and types.

use std::path::{Component, Path};

use lakemill::domain::pipeline::types::DataType;
use lakemill::sql::query::{identifier, literal};
use lakemill::sql::sandbox::staged_path::escaped_name;
use lakemill::sql::sandbox::task::{Relation, RelationColumn};
use lakemill::sql::types::sql_type;

/// Longest name of a type, in bytes.
const TYPE_BYTES_MAX: usize = 1_024;

/// The statements that create the view; for a table of another pipeline, in a schema with the pipeline's name.
///
/// # Errors
/// A path leaves the folder, or the name of a type is malformed.
pub fn view(relation: &Relation) -> Result<String, String> {
    let wrong = |wrong: String| format!("table `{}`: {wrong}", relation.name);
    let (schema, table) = match relation.name.split_once('.') {
        Some((pipeline, table)) => (Some(identifier(pipeline)), table),
        None => (None, relation.name.as_str()),
    };
    let create = match &schema {
        Some(schema) => format!("CREATE SCHEMA IF NOT EXISTS {schema}; CREATE VIEW {schema}.{}", identifier(table)),
        None => format!("CREATE VIEW {}", identifier(table)),
    };
    let types: Vec<String> =
        relation.columns.iter().map(|column| type_text(&column.ty)).collect::<Result<_, _>>().map_err(wrong)?;
    let columns = relation.columns.iter().zip(&types);
    if relation.files.is_empty() {
        let columns: Vec<String> =
            columns.map(|(column, ty)| format!("CAST(NULL AS {ty}) AS {}", identifier(&column.name))).collect();
        return Ok(format!("{create} AS SELECT {} WHERE false", columns.join(", ")));
    }
    let columns = columns
        .map(|(column, ty)| {
            Ok(format!("CAST({} AS {ty}) AS {}", identifier(&source_name(column)?), identifier(&column.name)))
        })
        .collect::<Result<Vec<_>, String>>()
        .map_err(wrong)?;
    let files = relation.files.iter().map(|file| path(file)).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    let partitions = relation
        .columns
        .iter()
        .filter(|column| column.partition)
        // Read as text; the view casts, and DuckDB still skips the files that don't match.
        .map(|column| Ok(format!("{}: 'VARCHAR'", literal(&source_name(column)?))))
        .collect::<Result<Vec<_>, String>>()
        .map_err(wrong)?;
    let hive = if partitions.is_empty() {
        "hive_partitioning = false".to_owned()
    } else {
        format!("hive_partitioning = true, hive_types_autocast = false, hive_types = {{{}}}", partitions.join(", "))
    };
    // All files of a table have the same columns, so DuckDB reads them from one; reading all would cost a millisecond per file.
    // System tables may hold files of older versions.
    let union = table.starts_with('_');
    let mut source = format!("read_parquet([{}], {hive}, union_by_name = {union})", files.join(", "));
    if union {
        // Columns that are missing from all files are null.
        let nulls = relation.columns.iter().map(|column| {
            Ok(format!("CAST(NULL AS {}) AS {}", type_text(&column.ty)?, identifier(&source_name(column)?)))
        });
        let nulls = nulls.collect::<Result<Vec<_>, String>>().map_err(wrong)?.join(", ");
        source = format!("(SELECT * FROM {source} UNION ALL BY NAME SELECT {nulls} WHERE false)");
    }
    Ok(format!("{create} AS SELECT {} FROM {source}", columns.join(", ")))
}

/// The column's name in the files or their paths.
fn source_name(column: &RelationColumn) -> Result<String, String> {
    if !column.partition {
        return Ok(column.name.clone());
    }
    escaped_name(&column.name).ok_or_else(|| format!("the name of the partition column `{}` is too long", column.name))
}

fn type_text(text: &str) -> Result<String, String> {
    if let Some(ty) = DataType::parse(text) {
        return Ok(sql_type(ty));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ ,()[]\"".contains(c);
    if text.is_empty() || text.len() > TYPE_BYTES_MAX || !text.chars().all(plain) {
        return Err(format!("`{text}` is not a type"));
    }
    Ok(text.to_owned())
}

fn path(file: &str) -> Result<String, String> {
    let inside = !file.is_empty() && Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    // DuckDB would expand a pattern.
    if !inside || file.contains(['*', '?', '[', '\0']) {
        return Err(format!("`{file}` is not a file of the folder"));
    }
    Ok(literal(file))
}
