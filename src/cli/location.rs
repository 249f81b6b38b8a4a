//! A place that an argument names: a folder, or `s3://bucket/prefix`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::config::bucket_name;

const S3_SCHEME: &str = "s3://";
/// Longest prefix, in bytes: keys have at most 1,024, and a table's files need the rest.
const PREFIX_BYTES_MAX: usize = 512;

/// A folder of this machine, or a folder of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Folder(PathBuf),
    S3(S3Location),
}

/// A folder of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Location {
    pub bucket: String,
    /// Empty, or ends with `/`.
    pub prefix: String,
}

impl Location {
    /// # Errors
    /// Same as for [`Location::parse`].
    pub fn from_argument(argument: OsString) -> Result<Self, String> {
        match argument.into_string() {
            Ok(text) => Self::parse(&text),
            // A name that is not UTF-8 can only be a folder's.
            Err(argument) => Ok(Self::Folder(argument.into())),
        }
    }

    /// # Errors
    /// The text has the scheme of a URL, but is not `s3://bucket/prefix`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with(S3_SCHEME) {
            return S3Location::parse(text).map(Self::S3);
        }
        let lower = text.to_ascii_lowercase();
        let scheme = lower.split_once(":/").map(|(scheme, _)| scheme);
        let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match scheme.filter(|scheme| is_scheme(scheme) && !Path::new(text).exists()) {
            Some(_) => Err(format!("expected a folder or `s3://bucket/prefix`, found `{text}`")),
            None if text.is_empty() => Err("expected a folder or `s3://bucket/prefix`".to_owned()),
            None => Ok(Self::Folder(text.into())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::S3(location) => location.fmt(f),
        }
    }
}

impl S3Location {
    fn parse(text: &str) -> Result<Self, String> {
        let (bucket, prefix) =
            split_s3(text).ok_or_else(|| format!("expected `s3://bucket/prefix`, found `{text}`"))?;
        let bucket = bucket_name(bucket).map_err(|expected| format!("bucket `{bucket}`: expected {expected}"))?;
        let folder = prefix.strip_suffix('/').unwrap_or(prefix);
        let refuse = |why: &str| Err(format!("prefix `{prefix}`: {why}"));
        if folder.len() > PREFIX_BYTES_MAX {
            return refuse(&format!("it has {} bytes, expected at most {PREFIX_BYTES_MAX}", folder.len()));
        }
        if folder.chars().any(char::is_control) {
            return refuse("it contains a control character");
        }
        // An empty one is the whole bucket; `s3://bucket//` is not.
        if !prefix.is_empty() && folder.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return refuse("it has a segment that is empty, `.` or `..`");
        }
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Ok(Self { bucket, prefix })
    }

    /// The prefix of `inner` below this folder, if it is in it or is it.
    pub fn below<'i>(&self, inner: &'i Self) -> Option<&'i str> {
        inner.prefix.strip_prefix(&self.prefix).filter(|_| self.bucket == inner.bucket)
    }
}

/// Without a slash at the end.
impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = format!("{S3_SCHEME}{}/{}", self.bucket, self.prefix);
        f.write_str(address.trim_end_matches('/'))
    }
}

/// Whether a path is an address of a bucket.
pub fn is_s3(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(S3_SCHEME.as_bytes())
}

/// Bucket and prefix of `s3://bucket/prefix`, the prefix as written; `None` without a bucket.
pub fn split_s3(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(S3_SCHEME)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    (!bucket.is_empty()).then_some((bucket, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(bucket: &str, prefix: &str) -> Location {
        Location::S3(S3Location { bucket: bucket.into(), prefix: prefix.into() })
    }

    #[test]
    fn buckets_and_folders_are_distinguished() {
        for (text, expected) in [
            ("s3://my-lake/shop/in", s3("my-lake", "shop/in/")),
            ("s3://my-lake/shop/in/", s3("my-lake", "shop/in/")),
            ("s3://my-lake", s3("my-lake", "")),
            ("s3://my-lake/", s3("my-lake", "")),
            ("s3://my-lake/a b/é?x#y%20", s3("my-lake", "a b/é?x#y%20/")),
            ("shop", Location::Folder("shop".into())),
            ("/srv/a:b", Location::Folder("/srv/a:b".into())),
            ("./s3:/x", Location::Folder("./s3:/x".into())),
        ] {
            assert_eq!(Location::parse(text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(s3("my-lake", "shop/in/").to_string(), "s3://my-lake/shop/in");
        assert_eq!(s3("my-lake", "").to_string(), "s3://my-lake");
    }

    #[test]
    fn malformed_addresses_are_refused_with_what_was_found() {
        let long = format!("s3://my-lake/{}", "p".repeat(513));
        for (text, part) in [
            ("", "expected a folder or `s3://bucket/prefix`"),
            ("s3://", "expected `s3://bucket/prefix`, found `s3://`"),
            ("s3:///x", "expected `s3://bucket/prefix`, found `s3:///x`"),
            ("s3://Bad_Name/x", "bucket `Bad_Name`: expected 3 to 63 of a-z"),
            ("s3://my-lake//x", "prefix `/x`: it has a segment that is empty, `.` or `..`"),
            ("s3://my-lake//", "prefix `/`: it has a segment that is empty"),
            ("s3://my-lake/a//b", "prefix `a//b`: it has a segment that is empty"),
            ("s3://my-lake/a/../b", "prefix `a/../b`: it has a segment that is empty, `.` or `..`"),
            ("s3://my-lake/a\u{7}", "control character"),
            (&long, "it has 513 bytes, expected at most 512"),
            ("s3:/my-lake/x", "expected a folder or `s3://bucket/prefix`, found `s3:/my-lake/x`"),
            ("S3://my-lake/x", "found `S3://my-lake/x`"),
            ("gs://my-lake/x", "found `gs://my-lake/x`"),
            ("https://s3.example.org/my-lake", "expected a folder or `s3://bucket/prefix`"),
        ] {
            let error = Location::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn nested_folders_are_found_by_whole_segments() {
        let of = |text: &str| match Location::parse(text).unwrap() {
            Location::S3(location) => location,
            Location::Folder(path) => panic!("{path:?}"),
        };
        let outer = of("s3://my-lake/shop");
        assert_eq!(outer.below(&of("s3://my-lake/shop/out")), Some("out/"));
        assert_eq!(outer.below(&of("s3://my-lake/shop")), Some(""));
        assert_eq!(outer.below(&of("s3://my-lake/shops/out")), None);
        assert_eq!(outer.below(&of("s3://other/shop/out")), None);
        assert_eq!(of("s3://my-lake").below(&outer), Some("shop/"));
    }
}
