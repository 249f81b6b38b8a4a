//! Paths of tables' files in a child's folder.
//!
//! Invariant: DuckDB reads the partition values from the path exactly. It reads `NULL` in any case as null and an
//! escaped one as text, and doesn't know Hive's null marker.

use std::path::{Component, Path};

use crate::domain::partition::{parse_segment, segment};

/// The path in a child's folder for a table's file with the key `<table>/<col>=<value>/…/part-00000.parquet` below the
/// pipeline. `None` if no table has such a key.
pub fn staged_path(key: &str) -> Option<String> {
    let plain = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
    if key.is_empty() || !plain || key.contains("//") || key.ends_with('/') {
        return None;
    }
    let (folders, file) = key.rsplit_once('/')?;
    let mut parts: Vec<String> = Vec::new();
    for (at, part) in folders.split('/').enumerate() {
        parts.push(if at > 0 && part.contains('=') { duckdb_segment(part)? } else { part.to_owned() });
    }
    parts.push(file.to_owned());
    Some(parts.join("/"))
}

/// The segment in DuckDB's form.
fn duckdb_segment(part: &str) -> Option<String> {
    let (name, value) = parse_segment(part)?;
    let escaped = escaped_name(&name)?;
    Some(match value {
        None => format!("{escaped}=NULL"),
        Some(value) if value.eq_ignore_ascii_case("null") => {
            format!("{escaped}=%{:02X}{}", value.as_bytes().first()?, &value[1..])
        }
        Some(_) => part.to_owned(),
    })
}

/// The name of a partition column in paths.
pub fn escaped_name(name: &str) -> Option<String> {
    segment(name, Some("")).ok().map(|made| made.trim_end_matches('=').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_the_text_null_stay_distinct() {
        for (key, name) in [
            ("t/part-00000.parquet", Some("t/part-00000.parquet")),
            ("t/a=1/b=x%2Fy/p.parquet", Some("t/a=1/b=x%2Fy/p.parquet")),
            ("t/a=__HIVE_DEFAULT_PARTITION__/p", Some("t/a=NULL/p")),
            ("t/a=%5F_HIVE_DEFAULT_PARTITION__/p", Some("t/a=%5F_HIVE_DEFAULT_PARTITION__/p")),
            ("t/a=NULL/p", Some("t/a=%4EULL/p")),
            ("t/a=null/p", Some("t/a=%6Eull/p")),
            ("t/a%3Db=/p", Some("t/a%3Db=/p")),
            ("../t/p", None),
            ("/etc/passwd", None),
            ("t/../../p", None),
            ("t//p", None),
            ("p", None),
            ("", None),
        ] {
            assert_eq!(staged_path(key).as_deref(), name, "{key}");
        }
    }
}
