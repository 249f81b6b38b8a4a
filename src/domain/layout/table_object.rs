//! Recognizes objects of tables by the names that only runs assign.

use super::{DELTA_LOG_FOLDER, ICEBERG_FOLDER, ICEBERG_HINT_NAME};

/// Whether a path in a table's folder is named by a run: `col=value/…/part-0a1b2c3d-0123456789abcdef.parquet`, or the
/// rejects file of a source; or as 0.1 named them, without the hash of the content.
pub fn is_table_object(path: &str) -> bool {
    if let Some(log) = path.strip_prefix(DELTA_LOG_FOLDER) {
        return is_delta_log_object(log);
    }
    if let Some(name) = path.strip_prefix(ICEBERG_FOLDER) {
        return is_iceberg_object(name);
    }
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    let Some(stem) = name.strip_suffix(".parquet") else { return false };
    let is_hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_part = stem.strip_prefix("part-").is_some_and(|name| match &name.split('-').collect::<Vec<_>>()[..] {
        [number] => number.len() >= 5 && is_number(number),
        [group, content] => is_hex(group, 8) && is_hex(content, 16),
        [group, content, number] => is_hex(group, 8) && is_hex(content, 16) && is_number(number),
        _ => false,
    });
    let source = stem.split_once('-').map_or(stem, |(source, content)| if is_hex(content, 16) { source } else { stem });
    let is_rejects = folders.is_none() && is_hex(source, 32);
    is_rejects || (is_part && folders.is_none_or(|f| f.split('/').all(|segment| segment.contains('='))))
}

/// Whether a name in the folder of a Delta log is named by a run.
fn is_delta_log_object(name: &str) -> bool {
    let is_version = |text: &str| text.len() == 20 && text.bytes().all(|b| b.is_ascii_digit());
    let version = name.strip_suffix(".checkpoint.parquet").or_else(|| name.strip_suffix(".json"));
    name == "_last_checkpoint" || version.is_some_and(is_version)
}

/// Whether a name in the folder of Iceberg metadata is named by a run.
pub fn is_iceberg_object(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_hash = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let version = name.strip_prefix('v').and_then(|name| name.strip_suffix(".metadata.json"));
    let list = name.strip_prefix("snap-").and_then(|name| name.strip_suffix(".avro")?.split_once('-'));
    name == ICEBERG_HINT_NAME
        || version.is_some_and(is_number)
        || name.strip_suffix("-m0.avro").is_some_and(is_hash)
        || list.is_some_and(|(snapshot, hash)| is_number(snapshot) && is_hash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_assigned_by_runs_are_ours() {
        let rejects = format!("{}.parquet", "0af1".repeat(8));
        let content = format!("{}-0123456789abcdef.parquet", "0af1".repeat(8));
        assert!(is_table_object(&content) && is_table_object("d=1/part-0a1b2c3d-0123456789abcdef-12.parquet"));
        assert!(
            is_table_object("part-0a1b2c3d-0123456789abcdef.parquet") && !is_table_object("part-0a1b2c3d-0123.parquet")
        );
        for ours in ["part-00000.parquet", "d=1/part-123456.parquet", "a=/b=x y/part-00001.parquet", &rejects] {
            assert!(is_table_object(ours), "{ours}");
        }
        for ours in ["00000000000000000010.json", "00000000000000000010.checkpoint.parquet", "_last_checkpoint"] {
            assert!(is_table_object(&format!("_delta_log/{ours}")) && !is_table_object(ours), "{ours}");
        }
        assert!(!is_table_object("_delta_log/0.json") && !is_table_object("_delta_log/notes.txt"));
        let hash = "0a1b2c3d".repeat(4);
        let metadata =
            ["v12.metadata.json", "version-hint.text", &format!("{hash}-m0.avro"), &format!("snap-3-{hash}.avro")];
        for ours in metadata {
            assert!(is_table_object(&format!("metadata/{ours}")) && !is_table_object(ours), "{ours}");
        }
        assert!(!is_table_object("metadata/v.metadata.json") && !is_table_object("metadata/00001-x.metadata.json"));
        for other in
            ["part-0.parquet", "chapter.txt", "src/part-00000.parquet", "a=1/notes.parquet", "part-0000x.parquet"]
        {
            assert!(!is_table_object(other), "{other}");
        }
    }
}
