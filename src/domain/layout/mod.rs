//! Builds every object key that Lakemill reads or writes, and checks keys from outside.

mod backup;
mod config_version;
mod manifest_object;
mod table_object;

pub use backup::{
    backup_data_prefix, backup_part_key, backup_root_key, backup_shard_key, backup_shards_prefix, backups_prefix,
};
pub use config_version::{ConfigChange, ConfigVersion};
pub use manifest_object::ManifestObject;
pub use table_object::{is_iceberg_object, is_table_object};

use std::fmt::Display;

use unicode_normalization::UnicodeNormalization;

use crate::domain::digest::sha256_hex;
use crate::domain::limits::{KEY_BYTES_MAX, KEY_DECODINGS_MAX, SLUG_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::partition;
use crate::domain::text::{clipped, is_bidi_control};

/// The table that holds rejected rows; its name can't be declared by a config.
pub const REJECTED_ROWS_TABLE: &str = "_rejected_rows";

/// The name of [`unfinished_key`], relative to the pipeline's prefix.
pub const UNFINISHED: &str = "unfinished.json";

/// The prefix of all pipelines, in each of the three buckets.
pub const PIPELINES_PREFIX: &str = "pipelines/";

/// `pipelines/<slug>/`, the prefix of a pipeline in each of the three buckets.
pub fn pipeline_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/")
}

/// The pipeline of an object by its whole key; `None` if the key isn't that of a pipeline's object.
pub fn pipeline_of(key: &str) -> Option<Slug> {
    split_key(key).map(|(slug, _)| slug)
}

/// The pipeline of an object by its whole key, and the key relative to the pipeline's prefix; `None` as for
/// [`pipeline_of`].
pub fn split_key(key: &str) -> Option<(Slug, &str)> {
    let (slug, rest) = key.strip_prefix("pipelines/")?.split_once('/')?;
    if rest.is_empty() { None } else { Slug::parse(slug).ok().map(|slug| (slug, rest)) }
}

/// The pipeline's config.
pub fn config_key(slug: &Slug) -> String {
    format!("pipelines/{slug}/pipeline.json")
}

/// The prefix of the configs that a pipeline had.
pub fn config_versions_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/config/")
}

/// A config that a pipeline had.
pub fn config_version_key(slug: &Slug, version: ConfigVersion) -> String {
    format!("{}{version}", config_versions_prefix(slug))
}

/// The marker of an unfinished operation on a pipeline.
pub fn unfinished_key(slug: &Slug) -> String {
    format!("pipelines/{slug}/{UNFINISHED}")
}

/// A published dashboard.
pub fn dashboard_key(slug: &Slug, name: &Slug) -> String {
    format!("{}{name}.yaml", dashboards_prefix(slug))
}

/// A dashboard's draft. Names have no dots, so this is not another dashboard's key.
pub fn dashboard_draft_key(slug: &Slug, name: &Slug) -> String {
    format!("{}{name}.draft.yaml", dashboards_prefix(slug))
}

/// The prefix of all dashboards of a pipeline.
pub fn dashboards_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/dashboards/")
}

/// The prefix of all saved queries of a pipeline.
pub fn saved_queries_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/queries/")
}

/// A saved query.
pub fn saved_query_key(slug: &Slug, id: impl Display) -> String {
    format!("{}{id}.json", saved_queries_prefix(slug))
}

/// A table's manifest. Takes a string, since a table that was removed from the config still has one.
pub fn manifest_key(slug: &Slug, table: &str) -> String {
    format!("pipelines/{slug}/manifests/{table}.json")
}

/// The prefix of the objects of a table's manifest other than its root.
pub fn manifest_objects_prefix(slug: &Slug, table: &str) -> String {
    format!("pipelines/{slug}/manifests/{table}/")
}

/// A shard of a table's manifest.
pub fn manifest_shard_key(slug: &Slug, table: &str, name: &str) -> String {
    format!("{}{name}.json.zst", manifest_objects_prefix(slug, table))
}

/// The intent of the run with this fence: objects that it may leave behind.
pub fn manifest_intent_key(slug: &Slug, table: &str, fence: u64) -> String {
    format!("{}{fence:020}.json", manifest_intents_prefix(slug, table))
}

/// The prefix of the intents of a table's runs.
pub fn manifest_intents_prefix(slug: &Slug, table: &str) -> String {
    format!("{}intent-", manifest_objects_prefix(slug, table))
}

/// The root of an earlier commit.
pub fn manifest_root_key(slug: &Slug, table: &str, sequence: u64) -> String {
    format!("{}root-{sequence:020}.json", manifest_objects_prefix(slug, table))
}

/// The text that the run with this fence adds to the table's Delta log.
pub fn manifest_log_key(slug: &Slug, table: &str, fence: u64) -> String {
    format!("{}delta-{fence:020}.json.zst", manifest_objects_prefix(slug, table))
}

/// The folder of a table's Delta log, in a table's folder.
pub const DELTA_LOG_FOLDER: &str = "_delta_log/";

/// The prefix of a table's Delta log in the warehouse.
pub fn delta_log_prefix(slug: &Slug, table: &str) -> String {
    format!("{}{DELTA_LOG_FOLDER}", table_prefix(slug, table))
}

/// A version of a table's Delta log.
pub fn delta_version_key(slug: &Slug, table: &str, version: u64) -> String {
    format!("{}{version:020}.json", delta_log_prefix(slug, table))
}

/// A checkpoint: all files of a table at a version of its Delta log.
pub fn delta_checkpoint_key(slug: &Slug, table: &str, version: u64) -> String {
    format!("{}{version:020}.checkpoint.parquet", delta_log_prefix(slug, table))
}

/// The object that names the last checkpoint of a Delta log.
pub fn delta_last_checkpoint_key(slug: &Slug, table: &str) -> String {
    format!("{}_last_checkpoint", delta_log_prefix(slug, table))
}

/// The folder of a table's Iceberg metadata, in a table's folder.
pub const ICEBERG_FOLDER: &str = "metadata/";

/// The prefix of a table's Iceberg metadata in the warehouse.
pub fn iceberg_prefix(slug: &Slug, table: &str) -> String {
    format!("{}{ICEBERG_FOLDER}", table_prefix(slug, table))
}

/// An object of a table's Iceberg metadata, relative to the pipeline's prefix.
pub fn relative_iceberg_key(table: &str, name: &str) -> String {
    format!("{table}/{ICEBERG_FOLDER}{name}")
}

/// The name of a version of a table's Iceberg metadata file.
pub fn iceberg_metadata_name(version: u64) -> String {
    format!("v{version}.metadata.json")
}

/// The name of the object that says which version of the Iceberg metadata is the last.
pub const ICEBERG_HINT_NAME: &str = "version-hint.text";

/// Files that a commit retired.
pub fn manifest_retired_key(slug: &Slug, table: &str, sequence: u64) -> String {
    format!("{}retired-{sequence:020}.json", manifest_objects_prefix(slug, table))
}

/// The name of a group's `nth` file, relative to the pipeline's prefix, with the file's SHA-256 in hex:
/// `trips/day=2013-01-01/part-0a1b2c3d-0123456789abcdef.parquet`, from the second file on with `-<nth>`. Equal names
/// mean equal bytes.
pub fn relative_data_key(table: impl Display, partition: &str, first_source: &str, sha256: &str, nth: usize) -> String {
    let slash = if partition.is_empty() { "" } else { "/" };
    let group = &sha256_hex(first_source.as_bytes())[..8];
    let content = sha256.get(..16).unwrap_or(sha256);
    let number = if nth > 0 { format!("-{nth}") } else { String::new() };
    format!("{table}/{partition}{slash}part-{group}-{content}{number}.parquet")
}

/// The prefix of all manifests of a pipeline.
pub fn manifests_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/manifests/")
}

/// The run lock of a pipeline without a key-value store, in the pipelines bucket.
pub fn run_lock_key(slug: &Slug) -> String {
    format!("{}run.lock", pipeline_prefix(slug))
}

/// The terminal record of a job.
pub fn job_record_key(slug: &Slug, job_id: &str) -> String {
    format!("pipelines/{slug}/jobs/{job_id}.json")
}

/// The config that a dry run checks.
pub fn dry_run_config_key(slug: &Slug, job_id: &str) -> String {
    format!("pipelines/{slug}/jobs/{job_id}.config.json")
}

/// The prefix of a pipeline's job history: terminal records, rejects of failed runs, and configs of dry runs.
pub fn job_records_prefix(slug: &Slug) -> String {
    format!("pipelines/{slug}/jobs/")
}

/// The rejects of a failed run.
pub fn job_rejects_key(slug: &Slug, job_id: &str) -> String {
    format!("pipelines/{slug}/jobs/{job_id}.rejected.parquet")
}

/// The prefix of a table's files in the warehouse.
pub fn table_prefix(slug: &Slug, table: &str) -> String {
    format!("pipelines/{slug}/{table}/")
}

/// The prefix of a table's rejected rows in the warehouse.
pub fn rejects_prefix(slug: &Slug, table: impl Display) -> String {
    format!("pipelines/{slug}/{}", relative_rejects_prefix(table))
}

/// [`rejects_prefix`] relative to the pipeline's prefix.
pub fn relative_rejects_prefix(table: impl Display) -> String {
    format!("{REJECTED_ROWS_TABLE}/table={table}/")
}

/// The file of one source's rejected rows, relative to the pipeline's prefix, with the file's SHA-256 in hex. Equal
/// names mean equal bytes.
pub fn relative_rejects_key(table: impl Display, source: &str, sha256: &str) -> String {
    let content = sha256.get(..16).unwrap_or(sha256);
    format!("{}{}-{content}.parquet", relative_rejects_prefix(table), &sha256_hex(source.as_bytes())[..32])
}

/// The longest path of a partition, in bytes, that leaves valid keys for its files under any slug.
pub fn partition_path_bytes_max(table: &str) -> usize {
    let longest = relative_data_key(table, "", "", &sha256_hex(b""), u32::MAX as usize);
    KEY_BYTES_MAX - (PIPELINES_PREFIX.len() + SLUG_BYTES_MAX + "/".len() + longest.len() + "/".len())
}

/// The workspace's settings, in the pipelines bucket.
pub const SETTINGS_KEY: &str = "workspace/settings.json";

/// A key outside all pipelines, for probes of reads, writes and deletes.
pub fn probe_key(id: &str) -> String {
    format!("workspace/.lakemill-probe-{id}")
}

/// Why a text is not a valid object key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not an object key: {why}")]
pub struct KeyError {
    pub found: String,
    pub why: &'static str,
}

/// Checks a key from outside, decoded once, and returns it in Unicode normal form C.
///
/// # Errors
/// Rejects keys over 1,024 bytes, empty segments, `.` and `..` segments, backslashes, NUL, control and bidirectional
/// formatting characters.
pub fn parse_key(text: &str) -> Result<String, KeyError> {
    let key: String = text.nfc().collect();
    let refuse = |why| Err(KeyError { found: clipped(text), why });
    if key.is_empty() {
        return refuse("it is empty");
    }
    if key.len() > KEY_BYTES_MAX {
        return refuse("it is longer than 1,024 bytes");
    }
    if key.contains('\\') {
        return refuse("it contains a backslash");
    }
    if key.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        return refuse("it contains a control or bidirectional formatting character");
    }
    if key.starts_with('/') {
        return refuse("it begins with `/`; keys begin at the lake's root without it");
    }
    if key.ends_with('/') {
        return refuse("it ends with `/`, so it is a folder");
    }
    for segment in key.split('/') {
        match segment {
            "" => return refuse("it has an empty segment (`//`)"),
            "." | ".." => return refuse("it has a `.` or `..` segment"),
            _ => {}
        }
    }
    Ok(key)
}

/// Checks the key of an object that another program may have stored. It may have empty segments (`in/`, `a//b.csv`) and
/// contain any character but NUL.
///
/// # Errors
/// Rejects an empty key, one over 1,024 bytes, NUL, and `.` and `..` segments, which HTTP clients and proxies resolve.
pub fn check_stored_key(key: &str) -> Result<(), KeyError> {
    let refuse = |why| Err(KeyError { found: clipped(key), why });
    if key.is_empty() {
        return refuse("it is empty");
    }
    if key.len() > KEY_BYTES_MAX {
        return refuse("it is longer than 1,024 bytes");
    }
    if key.contains('\0') {
        return refuse("it contains a NUL");
    }
    if key.split('/').any(|segment| matches!(segment, "." | "..")) {
        return refuse("it has a segment `.` or `..`");
    }
    Ok(())
}

/// Whether a key has an empty segment: a folder marker (`in/`) or a doubled slash (`in//a.csv`).
pub fn has_empty_segment(key: &str) -> bool {
    key.split('/').any(str::is_empty)
}

/// Checks the key of a new object: like [`parse_key`], and that it is portable.
///
/// # Errors
/// See [`parse_key`] and [`check_portable`], for the whole key and its part below a pipeline.
pub fn parse_new_key(text: &str) -> Result<String, KeyError> {
    let key = parse_key(text)?;
    let relative = pipeline_of(&key).and_then(|slug| key.strip_prefix(&pipeline_prefix(&slug)));
    match check_portable(&key).and_then(|()| relative.map_or(Ok(()), check_portable)) {
        Ok(()) => Ok(key),
        Err(why) => Err(KeyError { found: clipped(text), why }),
    }
}

/// Whether a key that [`parse_key`] accepts has the same meaning on other systems, for instance in an archive.
///
/// # Errors
/// A segment that some decoder reads as `.` or `..`; a drive letter at the start.
pub fn check_portable(key: &str) -> Result<(), &'static str> {
    portable(key, decodes_to_dots)
}

/// [`check_portable`] for keys of the warehouse, where a partition's segment contains a value with any text.
///
/// # Errors
/// Same as for [`check_portable`].
pub fn check_portable_in_warehouse(key: &str) -> Result<(), &'static str> {
    portable(key, |segment| !partition::is_segment(segment) && decodes_to_dots(segment))
}

/// Checks that no decoder finds a `.` or `..` segment in a key. Unlike [`check_portable`] it accepts a drive letter.
///
/// # Errors
/// A segment that some decoder reads as `.` or `..`; in the warehouse, unless it is that of a partition.
pub fn check_no_hidden_dots(key: &str, in_warehouse: bool) -> Result<(), &'static str> {
    let is_value = |segment: &str| in_warehouse && partition::is_segment(segment);
    check_segments(key, |segment| !is_value(segment) && decodes_to_dots(segment))
}

/// Checks that no decoder's reading of a key leads out of its folder. Counts every parent step that some decoder finds,
/// but only segments that all decoders read as one folder.
///
/// # Errors
/// Some decoder leaves the folder.
pub fn check_stays_below(key: &str) -> Result<(), &'static str> {
    let mut depth = 0_usize;
    for segment in key.split('/') {
        let steps = decodings(segment).map(|text| parts(&text).filter(|part| *part == "..").count()).max();
        depth = depth
            .checked_sub(steps.unwrap_or(0))
            .ok_or("it has a segment that leaves the pipeline's folder when decoded")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
        if segment.chars().all(is_name) && segment.contains(|c: char| c.is_ascii_alphanumeric()) {
            depth += 1;
        }
    }
    Ok(())
}

fn portable(key: &str, decodes_to_dots: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    check_segments(key, decodes_to_dots)?;
    // A drive, or a stream of a file, on other systems.
    if key.split('/').next().is_some_and(|first| first.len() == 2 && first.ends_with(':')) {
        return Err("it begins with a drive letter");
    }
    Ok(())
}

fn check_segments(key: &str, decodes_to_dots: impl Fn(&str) -> bool) -> Result<(), &'static str> {
    if key.split('/').any(decodes_to_dots) {
        return Err("it has a segment with an encoded `.` or `..`, or a look-alike of one");
    }
    Ok(())
}

/// Path separators, and characters that look like them or are mapped to them.
const SEPARATORS: &[char] = &['/', '\\', '\u{2044}', '\u{2215}', '\u{2216}', '\u{29f5}', '\u{29f8}'];

/// Whether some decoder takes a part of `segment` for a `.` or `..` segment.
fn decodes_to_dots(segment: &str) -> bool {
    decodings(segment).any(|text| parts(&text).any(|part| matches!(part, "." | "..")))
}

/// The parts of a text that lenient systems treat as path segments.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(SEPARATORS).map(str::trim)
}

/// Readings of `segment` by decoders: unchanged, and percent-decoded up to [`KEY_DECODINGS_MAX`] times, including
/// overlong UTF-8. Look-alike characters are replaced by their plain forms.
fn decodings(segment: &str) -> impl Iterator<Item = String> {
    let again = |text: &String| Some(percent_decoded(text)).filter(|decoded| decoded != text);
    let texts = std::iter::successors(Some(segment.to_owned()), again);
    texts.take(KEY_DECODINGS_MAX + 1).map(|text| text.nfkc().collect())
}

/// Percent-decodes like the most lenient decoders: accepts `%uXXXX` and overlong UTF-8.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |from: usize, to: usize| {
            let digits = after.get(from..to).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let wide = matches!(after.first(), Some(b'u' | b'U')).then(|| hex(1, 5)).flatten().and_then(char::from_u32);
        match (first, wide, hex(0, 2)) {
            (b'%', Some(c), _) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &after[5..];
            }
            (b'%', None, Some(byte)) => {
                bytes.push(byte as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    shortest(&bytes)
}

/// Decodes UTF-8 in which ASCII characters may be overlong.
fn shortest(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let (ascii, length) = match rest {
            [a @ 0xc0..=0xc1, b @ 0x80..=0xbf, ..] => (Some((a & 1) << 6 | (b & 0x3f)), 2),
            [0xe0, b @ 0x80..=0x81, c @ 0x80..=0xbf, ..] => (Some((b & 1) << 6 | (c & 0x3f)), 3),
            [0xf0, 0x80, c @ 0x80..=0x81, d @ 0x80..=0xbf, ..] => (Some((c & 1) << 6 | (d & 0x3f)), 4),
            _ => (None, 1),
        };
        out.push(ascii.unwrap_or(*first));
        rest = after.get(length - 1..).unwrap_or_default();
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_leave_their_prefix_are_refused() {
        for bad in
            ["", "/a", "a/", "a//b", "a/../b", "..", "./a", "a\\b", "a\0b", "a\nb", "a\u{202e}b", &"k".repeat(1025)]
        {
            assert!(parse_key(bad).is_err(), "{bad:?}");
        }
        for (key, why) in
            [("/etc/x.csv", "begins with `/`"), ("a/", "it is a folder"), ("a//b", "empty"), ("a/../b", "`..`")]
        {
            assert!(parse_key(key).unwrap_err().why.contains(why), "{key}");
        }
        assert_eq!(parse_key("pipelines/x/a b+c%.csv").as_deref(), Ok("pipelines/x/a b+c%.csv"));
    }

    #[test]
    fn stored_keys_may_be_unusual_without_dot_segments() {
        for fine in ["a\\b.csv", "in/line\nbreak.csv", "in/\u{202e}x.csv", "e\u{301}", "..%2fx", "...", "\\..\\x"] {
            assert_eq!(check_stored_key(fine), Ok(()), "{fine:?}");
        }
        for fine in ["a//b", "/a", "a/", "/", "//", "in///x.csv", &"k".repeat(1_024)] {
            assert_eq!(check_stored_key(fine), Ok(()), "{fine:?}");
            assert_eq!(has_empty_segment(fine), fine.contains('/'), "{fine:?}");
        }
        for bad in ["", ".", "..", "a/../b", "./a", "a/.", "a//..//b", "a\0b", &"k".repeat(1_025)] {
            assert!(check_stored_key(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn new_keys_hide_no_dot_segments() {
        for bad in [
            "a/%2e%2e/b",
            "a/%252e%252E/b",
            "a/%2525252e/b",
            "%2e",
            "..%2f..",
            "a/..%2fb",
            "..%2F..%2Fetc/passwd",
            "a%2f..%2fb",
            "a%2F.%2Fb",
            "%2e%2e%2fx",
            "%2E%2E%5Cx",
            "..%5c..",
            "a/x%5C..",
            "..%252f..",
            "..%255cx",
            "a/%2e%2e%2f/b",
            "a/.%2e/b",
            "a%2f%2e%2e",
            "%c0%ae%c0%ae/x",
            "%C0%AE%c0%ae%c0%afx",
            "%e0%80%ae%e0%80%ae/x",
            "%f0%80%80%ae./x",
            "..%c1%9cx",
            "..%25c0%25afx",
            "%u002e%u002e/x",
            "..%u2215x",
            "..%ef%bc%8fx",
            "..%20/x",
            "\u{2025}/x",
            "a/\u{2024}\u{2024}",
            "\u{ff0e}\u{ff0e}/x",
            "..\u{ff0f}x",
            "..\u{2215}x",
            "..\u{ff3c}x",
        ] {
            assert!(parse_new_key(bad).is_err(), "{bad}");
            assert!(check_portable_in_warehouse(bad).is_err(), "{bad}");
        }
        for fine in [
            "...",
            "a/...csv",
            "a..b%2fc",
            "50%",
            "100%/x%",
            "a%2Fb",
            "a%2fb%5cc",
            "%",
            "%2",
            "%zz",
            "%u00",
            "a%u0041",
            "..%zz",
            "v=..%2Fx",
            "a=x%2Fy",
            "%c0",
            "%c0%80x",
            "..x%2f",
            "x%2f...",
            "\u{2026}",
            "a%252Fb",
            "\u{e9}%20b",
        ] {
            assert_eq!(parse_new_key(fine).as_deref(), Ok(fine));
        }
    }

    #[test]
    fn partition_values_may_look_like_path_segments() {
        for value in ["x/y", "x/../y", "../..", "..", "a/./b", "%2e%2e%2f", "..\\..", "50%"] {
            let key = format!("t/v={}/part-00000.parquet", partition::segment("v", Some(value)).unwrap().split_at(2).1);
            assert_eq!(check_portable_in_warehouse(&key), Ok(()), "{key}");
        }
        // Forms that a run doesn't write.
        for bad in ["t/v=x%2f..%2fy/p", "t/v=a%2F..%2Fb%2e/p", "t/%2e%2e%2f=/p", "t=/../p"] {
            assert!(check_portable_in_warehouse(bad).is_err(), "{bad}");
        }
        assert!(parse_new_key("t/v=x%2F..%2Fy/part-00000.parquet").is_err());
    }

    #[test]
    fn new_keys_begin_with_no_drive_letter() {
        for bad in ["C:/x", "pipelines/trips/C:/x", "a/../b"] {
            assert!(parse_new_key(bad).is_err(), "{bad}");
        }
        for fine in ["C:x", "pipelines/trips/C:x", "a/C:/x"] {
            assert_eq!(parse_new_key(fine).as_deref(), Ok(fine));
        }
    }

    #[test]
    fn keys_are_returned_in_normal_form_c() {
        assert_eq!(parse_key("a/e\u{301}.csv").as_deref(), Ok("a/é.csv"));
    }
}
