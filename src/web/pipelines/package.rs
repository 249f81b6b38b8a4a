//! The format of an exported pipeline: a zip archive.
//!
//! `pipelines/…`, `lake/…` and `warehouse/…` hold the objects of the three buckets, by key relative to the pipeline's
//! prefix. A key that isn't a portable file name (a backslash, a line break, an empty segment) is stored at
//! `escaped/<bucket>/…`: the key with a leading `/`, percent-encoded except for letters, digits, `-`, `_` and `.`. A key
//! of the lake of which a decoder makes `.` or `..` segments (`a/..%2fb.csv`) is stored at `encoded/lake/…`: its bytes in
//! hexadecimal digits, of which no decoder makes anything.
//! `manifest.json`, the last entry, lists the objects.
//!
//! Invariant: a key has exactly one name, so that no two entries are the same object.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::domain::digest::hex;
use crate::domain::layout::{
    UNFINISHED, check_no_hidden_dots, check_portable, check_portable_in_warehouse, check_stays_below, check_stored_key,
    parse_key,
};
use crate::domain::limits::{CONFIG_BYTES_MAX, PROBLEMS_MAX};
use crate::http::{ApiError, ErrorCode};
use crate::ports::store::Bucket;
use crate::web::access::clipped;

/// The format that this version writes, and the only one that it reads.
pub(super) const FORMAT: u32 = 1;
/// The name of the manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// The key of a config, relative to the pipeline's prefix.
pub(super) const CONFIG: &str = "pipeline.json";

/// The archive's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveManifest {
    pub(super) format: u32,
    /// The exported pipeline's slug.
    pub(super) slug: String,
    /// Objects changed during the export, so tables may not match their sources. The first run after the import repairs
    /// that.
    pub(super) changed_during_export: bool,
    /// In archive order.
    pub(super) objects: Vec<PackedObject>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedObject {
    /// The entry's name.
    pub(super) path: String,
    /// Bytes.
    pub(super) size: u64,
    /// Hex.
    pub(super) sha256: String,
}

/// A problem of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ArchiveProblem {
    kind: &'static str,
    message: String,
    /// The entry's name; `""` for the archive.
    path: String,
}

/// The problems of an archive, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<ArchiveProblem>);

impl Problems {
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(ArchiveProblem { kind: "invalid_archive", message: message.into(), path: clipped(path) });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// # Errors
    /// `invalid_archive` if there are any.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let place = if first.path.is_empty() { "the archive".to_owned() } else { format!("`{}`", first.path) };
        let message = format!("{place}: {}", first.message);
        Err(ApiError::new(ErrorCode::InvalidArchive, message).with_problems(&self.0))
    }
}

/// The folder of entries whose names are percent-encoded keys.
const ESCAPED: &str = "escaped/";
/// The folder of entries whose names are keys in hexadecimal digits.
const HEX: &str = "encoded/";
/// Characters that are encoded. A name keeps its extension.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The name of an object's entry. `key` is relative to the pipeline's prefix.
pub(super) fn entry_name(bucket: Bucket, key: &str) -> String {
    match check_plain(bucket, key) {
        Ok(()) => format!("{bucket}/{key}"),
        Err(_) if decodes_to_dot_segments(bucket, key) => format!("{HEX}{bucket}/{}", hex(key.as_bytes())),
        Err(_) => format!("{ESCAPED}{bucket}/{}", utf8_percent_encode(&format!("/{key}"), ENCODED)),
    }
}

/// The object of an entry: its bucket, and its exact key relative to the pipeline's prefix. The key is empty for an object
/// whose key is the prefix itself.
///
/// # Errors
/// Why the name is invalid.
pub(super) fn object_of(name: &str) -> Result<(Bucket, String), Cow<'static, str>> {
    if let Some(encoded) = name.strip_prefix(HEX) {
        let (bucket, digits) = in_bucket(encoded).ok_or("expected a path under `encoded/lake/`")?;
        let key = from_hex(digits).ok_or("its key is not UTF-8 in hexadecimal digits")?;
        return canonical(name, bucket, &key);
    }
    let Some(escaped) = name.strip_prefix(ESCAPED) else {
        let (bucket, key) = in_bucket(name).ok_or("expected a path under `pipelines/`, `lake/` or `warehouse/`")?;
        check_plain(bucket, key)?;
        return Ok((bucket, key.to_owned()));
    };
    let (bucket, encoded) = in_bucket(escaped)
        .ok_or("expected a path under `escaped/pipelines/`, `escaped/lake/` or `escaped/warehouse/`")?;
    let decoded = percent_decode_str(encoded).decode_utf8().map_err(|_| "its key is not UTF-8")?;
    let key = decoded.strip_prefix('/').ok_or("its key doesn't start with `%2F`")?;
    canonical(name, bucket, key)
}

/// The object of an entry with an encoded name, if the name is the object's canonical one.
fn canonical(name: &str, bucket: Bucket, key: &str) -> Result<(Bucket, String), Cow<'static, str>> {
    check_any(bucket, key)?;
    let expected = entry_name(bucket, key);
    if expected != name {
        let shown: String = expected.chars().take(200).collect();
        return Err(format!("expected its key to be named `{shown}`").into());
    }
    Ok((bucket, key.to_owned()))
}

fn from_hex(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>()?;
    String::from_utf8(bytes).ok()
}

/// Whether some decoder reads `.` or `..` segments in a key of the lake, where users choose the names.
fn decodes_to_dot_segments(bucket: Bucket, key: &str) -> bool {
    bucket == Bucket::Lake && check_no_hidden_dots(key, false).is_err()
}

fn in_bucket(name: &str) -> Option<(Bucket, &str)> {
    Bucket::ALL.into_iter().find_map(|bucket| {
        let key = name.strip_prefix(&bucket.to_string())?.strip_prefix('/')?;
        Some((bucket, key))
    })
}

/// Checks that a key can be an entry's name unescaped.
fn check_plain(bucket: Bucket, key: &str) -> Result<(), &'static str> {
    parse_key(key).map_err(|error| error.why)?;
    if bucket == Bucket::Warehouse { check_portable_in_warehouse(key) } else { check_portable(key) }?;
    check_any(bucket, key)
}

/// Checks that a key stays within its prefix, however it is decoded.
fn check_any(bucket: Bucket, key: &str) -> Result<(), &'static str> {
    if !key.is_empty() {
        check_stored_key(key).map_err(|error| error.why)?;
    }
    match bucket {
        Bucket::Lake => check_stays_below(key)?,
        Bucket::Pipelines | Bucket::Warehouse => check_no_hidden_dots(key, bucket == Bucket::Warehouse)?,
    }
    if bucket == Bucket::Pipelines && key == UNFINISHED {
        return Err("it is the marker of an unfinished pipeline");
    }
    Ok(())
}

/// Checks the size of an entry.
///
/// # Errors
/// Why it is too large.
pub(super) fn check_size(name: &str, size: u64) -> Result<(), Cow<'static, str>> {
    let is_config = name == entry_name(Bucket::Pipelines, CONFIG);
    if is_config && size > CONFIG_BYTES_MAX as u64 {
        return Err(format!("a config has at most {CONFIG_BYTES_MAX} bytes").into());
    }
    Ok(())
}

/// Whether an object is compressed already.
pub(super) fn is_compressed(key: &str) -> bool {
    key.ends_with(".parquet") || crate::domain::source_name::compression(key).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_objects_of_the_three_buckets() {
        assert_eq!(object_of("lake/a/b c%.csv"), Ok((Bucket::Lake, "a/b c%.csv".to_owned())));
        assert_eq!(object_of("warehouse/t/v=a%2Fb/part-00000.parquet").unwrap().0, Bucket::Warehouse);
        assert!(object_of("warehouse/t/v=x%2F..%2Fy/part-00000.parquet").is_ok());
        assert_eq!(object_of("pipelines/pipeline.json"), Ok((Bucket::Pipelines, "pipeline.json".to_owned())));
        // Keys keep their bytes, regardless of their normal form.
        assert_eq!(object_of("lake/e\u{301}.csv").unwrap().1, "e\u{301}.csv");
    }

    #[test]
    fn traversal_names_are_rejected() {
        for bad in [
            "x.csv",
            "lake",
            "lake/",
            "Lake/x",
            "/lake/x",
            "../lake/x",
            "lake/../x",
            "lake/./x",
            "lake//x",
            "lake/x/",
            "lake\\x",
            "lake/a\\..\\b",
            "lake/C:/x",
            "lake/a\0b",
            "lake/%2e%2e/x",
            "lake/%252e%252E/x",
            "lake/%2e%2e%2f/x",
            "lake/..%2fx",
            "lake/a%2F..%5cb",
            "lake/%c0%ae%c0%ae/x",
            "warehouse/t/..%2f..",
            "lake/v=x%2F..%2Fy",
            "lake/\u{2024}\u{2024}/x",
            "lake/\u{ff0e}\u{ff0e}/x",
            "lake/a\u{202e}b",
            "pipelines/unfinished.json",
            "escaped/x",
            "escaped/lake",
            "escaped/lake/",
            "escaped/other/%2Fa%5Cb",
            "escaped/lake/a%5Cb",
            "escaped/lake/%2F..%2Fx",
            "escaped/lake/%2F.%2Fx",
            "escaped/lake/%2Fa%2F..",
            "escaped/lake/%2F..",
            "escaped/lake/..",
            "escaped/lake/../%2Fa%5Cb",
            "escaped/../lake/%2Fa%5Cb",
            "escaped/lake/%2Fa%00b",
            "escaped/lake/%2F%FFb",
            "escaped/lake/%2F..%5C..%5Cx",
            "escaped/lake/%2Fa%5C..%5Cx",
            "escaped/lake/%2F%252e%252e%252fx%5Cb",
            "escaped/lake/%2F%252e%252e%2Fx",
            "escaped/lake/%2Fv%3Dx%252F..%252Fy%5Cz",
            "escaped/lake/%2F%E2%80%A4%E2%80%A4%2Fx",
            "escaped/warehouse/%2Ft%2F..%252f..%2F%2Fx",
            "escaped/pipelines/%2Funfinished.json",
            // in/..%2fx.csv, which is in `encoded/`
            "escaped/lake/%2Fin%2F..%252fx.csv",
            // ..%2fx, in/..%2f..%2fx, in/a%2fb/..%2f..%2f..%2fx, in/../x
            "encoded/lake/2e2e25326678",
            "encoded/lake/696e2f2e2e2532662e2e25326678",
            "encoded/lake/696e2f612532662f2e2e2532662e2e25326678",
            "encoded/lake/696e2f2e2e2f78",
            // in/x, which needs no encoding; in/..%2fx in another bucket, and with capital letters; no hexadecimal digits
            "encoded/lake/696e2f78",
            "encoded/warehouse/696e2f2e2e25326678",
            "encoded/pipelines/696e2f2e2e25326678",
            "encoded/lake/696E2F2E2E25326678",
            "encoded/lake/696e2f2e2e2532667",
            "encoded/lake/+9",
            "encoded/lake/\u{661}1",
            "encoded/lake/",
            "encoded/696e2f2e2e25326678",
        ] {
            assert!(object_of(bad).is_err(), "{bad:?}");
        }
        let long = format!("escaped/lake/%2F{}", "k".repeat(1_025));
        assert_eq!(object_of(&long), Err("it is longer than 1,024 bytes".into()));
    }

    /// Keys that are not portable file names, with their entries.
    const UNUSUAL: &[(&str, &str)] = &[
        ("", "%2F"),
        ("/", "%2F%2F"),
        ("in/", "%2Fin%2F"),
        ("in//b.csv", "%2Fin%2F%2Fb.csv"),
        ("/b.csv", "%2F%2Fb.csv"),
        ("a\\b.csv", "%2Fa%5Cb.csv"),
        ("line\nbreak-1_2.csv", "%2Fline%0Abreak-1_2.csv"),
        ("C:/x.csv", "%2FC%3A%2Fx.csv"),
        ("\u{202e}é%//x", "%2F%E2%80%AE%C3%A9%25%2F%2Fx"),
    ];

    #[test]
    fn unusual_keys_have_one_escaped_name_each() {
        for (key, encoded) in UNUSUAL {
            let name = format!("escaped/lake/{encoded}");
            assert_eq!(entry_name(Bucket::Lake, key), name);
            assert_eq!(object_of(&name), Ok((Bucket::Lake, (*key).to_owned())));
            // No other name gives the same key.
            assert!(object_of(&format!("lake/{key}")).is_err(), "{key:?}");
            for other in [name.replace("%2F", "/"), name.replace("%2F", "%2f"), name.replace("%2F", "%252F")] {
                assert_ne!(object_of(&other), Ok((Bucket::Lake, (*key).to_owned())), "{other}");
            }
        }
        for needless in ["escaped/lake/%2Fa.csv", "escaped/lake/%2Fa%2Fb%20c.csv", "escaped/lake/%2Fescaped"] {
            let why = object_of(needless).unwrap_err();
            assert!(why.contains("named `lake/"), "{why}");
        }
    }

    #[test]
    fn keys_that_hide_steps_within_the_pipeline_are_hexadecimal() {
        for key in [
            "in/..%2fb.csv",
            "in/%2e%2e/b.csv",
            "a/b/..%252f..%255cc",
            "in/a\\..\\x.csv",
            "a/%2E/b",
            "in/\u{ff0e}\u{ff0e}",
        ] {
            let name = entry_name(Bucket::Lake, key);
            assert!(name.strip_prefix("encoded/lake/").unwrap().bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
            assert_eq!(object_of(&name), Ok((Bucket::Lake, key.to_owned())));
        }
        assert_eq!(entry_name(Bucket::Lake, "in/..%2fx"), "encoded/lake/696e2f2e2e25326678");
    }

    /// The folder depth below the pipeline that a key reaches after `times` decodings; `None` if it leaves the
    /// pipeline.
    fn decoded_depth(key: &str, times: usize, separators: &[char]) -> Option<usize> {
        let mut text = key.to_owned();
        for _ in 0..times {
            text = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        }
        text.split(separators).try_fold(0_usize, |depth, part| match part {
            "" | "." => Some(depth),
            ".." => depth.checked_sub(1),
            _ => Some(depth + 1),
        })
    }

    proptest::proptest! {
        #[test]
        fn no_decoder_yields_keys_outside_the_pipeline(
            key in "(a|b|/|\\\\|\\.\\.|\\.|%2e|%2f|%5c|%25|2e|2f|%){1,12}",
        ) {
            if check_any(Bucket::Lake, &key).is_ok() {
                for times in 0..4 {
                    for separators in [&['/'][..], &['/', '\\']] {
                        proptest::prop_assert!(decoded_depth(&key, times, separators).is_some(), "{}", key);
                    }
                }
            }
        }

        #[test]
        fn keys_round_trip_through_entry_names(
            key in "[a/.\\\\%:\n\u{202e}\u{e9}\u{301}2ef ]{0,12}",
            bucket in proptest::sample::select(&Bucket::ALL[..]),
        ) {
            let stored = key.is_empty() || check_stored_key(&key).is_ok();
            let name = entry_name(bucket, &key);
            match object_of(&name) {
                Ok(object) => {
                    proptest::prop_assert!(stored);
                    proptest::prop_assert_eq!(object, (bucket, key));
                }
                Err(why) => {
                    let escapes = match bucket {
                        Bucket::Lake => check_stays_below(&key).is_err(),
                        Bucket::Pipelines | Bucket::Warehouse => {
                            check_no_hidden_dots(&key, bucket == Bucket::Warehouse).is_err()
                        }
                    };
                    proptest::prop_assert!(!stored || escapes, "{}: {}", name, why);
                }
            }
            let parts: Vec<&str> = name.split('/').collect();
            let safe = !name.starts_with(ESCAPED) || parts.len() == 3 && !parts.contains(&"..") && !name.contains('\\');
            proptest::prop_assert!(safe, "{}", name);
        }

        #[test]
        fn entries_are_distinct_objects(a in "((escaped/)?lake/(%2F|%2f|/|a|%5C|\\\\|%|\\.){0,6})|(encoded/lake/(61|2f|2F|2e){0,6})", b in "(escaped/)?lake/(%2F|%2f|/|a|%5C|\\\\|%|\\.){0,6}") {
            if let (Ok(one), Ok(other)) = (object_of(&a), object_of(&b)) {
                proptest::prop_assert_eq!(one == other, a == b);
            }
        }
    }
}
