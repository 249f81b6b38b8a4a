//! Tags of files, without reading their content.
//!
//! A file that this store put has the hash of its content in an extended attribute, with the inode, size and modification
//! time for which it is valid. Any other file, and one that changed since, has a tag derived from inode, size, modification
//! and change time. If the change time is a whole second, the tag contains it.

use std::path::Path;
use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};
use rustix::fd::AsFd;
use rustix::fs::{FileType, Stat, XattrFlags, fgetxattr, fsetxattr, fstat, getxattr, lgetxattr};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::domain::digest::hex;
use crate::domain::file_tag;
use crate::ports::store::ETag;

use super::folder::Folder;

const NS_PER_SECOND: i128 = 1_000_000_000;
const ATTRIBUTE: &str = "user.lakemill.etag";
/// A version, three numbers of up to 20 digits, and a hash of 64 digits.
const ATTRIBUTE_BYTES_MAX: usize = 160;

/// Identifies a state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) inode: u64,
    pub(super) size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl Signature {
    #[expect(clippy::unnecessary_cast, reason = "the types of the fields differ between architectures")]
    pub(super) fn of(stat: &Stat) -> Self {
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    pub(super) fn for_file(file: impl AsFd) -> std::io::Result<Self> {
        Ok(Self::of(&fstat(file)?))
    }

    pub(super) fn modified(&self) -> DateTime<Utc> {
        i64::try_from(self.modified_ns).map(DateTime::from_timestamp_nanos).unwrap_or_default()
    }

    /// When content or metadata last changed. Set by the kernel alone.
    pub(super) fn changed(&self) -> DateTime<Utc> {
        i64::try_from(self.changed_ns).map(DateTime::from_timestamp_nanos).unwrap_or_default()
    }

    /// Equal except for the change time, which linking and unlinking update.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        (self.inode, self.size, self.modified_ns) == (other.inode, other.size, other.modified_ns)
    }

    fn attribute(&self, hash: &str) -> String {
        format!("1 {} {} {} {hash}", self.inode, self.size, self.modified_ns)
    }

    fn tag(&self) -> ETag {
        let mut hasher = Sha256::new();
        hasher.update(self.inode.to_le_bytes());
        hasher.update(self.size.to_le_bytes());
        hasher.update(self.modified_ns.to_le_bytes());
        hasher.update(self.changed_ns.to_le_bytes());
        let state = &hex(&hasher.finalize())[..32];
        let second = self.changed_ns.div_euclid(NS_PER_SECOND);
        match i64::try_from(second) {
            Ok(second) if self.changed_ns.rem_euclid(NS_PER_SECOND) == 0 => ETag(file_tag::for_second(second, state)),
            Ok(_) | Err(_) => ETag(format!("stat-{state}")),
        }
    }
}

pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// A file's tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) etag: ETag,
    /// Whether it is the hash of the content.
    pub(super) is_hash: bool,
}

impl Tag {
    fn new(signature: &Signature, attribute: Option<&[u8]>) -> Self {
        match attribute.and_then(|value| hash_of(signature, value)) {
            Some(hash) => Self { etag: ETag(hash), is_hash: true },
            None => Self { etag: signature.tag(), is_hash: false },
        }
    }

    /// The tag of an open file.
    pub(super) fn for_file(folder: &Folder, file: impl AsFd, signature: &Signature) -> Self {
        let mut buffer = [0; ATTRIBUTE_BYTES_MAX];
        Self::new(signature, attribute(folder, |buffer| fgetxattr(file, ATTRIBUTE, buffer), &mut buffer))
    }

    /// The tag of a file by path. The attribute may be that of a file that has just replaced it: `None` if it doesn't match
    /// the signature, and the caller must retry.
    pub(super) fn for_path(folder: &Folder, path: &Path, signature: &Signature) -> Option<Self> {
        let mut buffer = [0; ATTRIBUTE_BYTES_MAX];
        let read = |buffer: &mut [u8]| {
            if folder.follows_links() { getxattr(path, ATTRIBUTE, buffer) } else { lgetxattr(path, ATTRIBUTE, buffer) }
        };
        let value = attribute(folder, read, &mut buffer);
        let tag = Self::new(signature, value);
        (tag.is_hash || value.is_none()).then_some(tag)
    }

    pub(super) fn for_stat(signature: &Signature) -> Self {
        Self::new(signature, None)
    }
}

fn attribute<'b>(
    folder: &Folder,
    read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    if !folder.has_xattrs.load(Ordering::Relaxed) {
        return None;
    }
    match read(buffer) {
        Ok(length) => Some(&buffer[..length]),
        Err(Errno::OPNOTSUPP) => {
            folder.has_xattrs.store(false, Ordering::Relaxed);
            None
        }
        Err(_) => None,
    }
}

fn hash_of(signature: &Signature, attribute: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(attribute).ok()?;
    let (_, hash) = text.rsplit_once(' ')?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hash && signature.attribute(hash) == text).then(|| hash.to_owned())
}

/// Stores the hash of a file's content in its attribute. If that fails, the file gets a tag derived from its stat.
pub(super) fn store_hash(file: impl AsFd, signature: &Signature, hash: &str) {
    let value = signature.attribute(hash);
    if let Err(errno) = fsetxattr(file, ATTRIBUTE, value.as_bytes(), XattrFlags::empty()) {
        tracing::debug!(%errno, "hash not stored in an extended attribute");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system with coarse times may hide a second change within the same second.
    #[test]
    fn tag_of_a_whole_second_is_not_trusted_within_it() {
        let may_hide = |changed_ns: i128| {
            let tag = Signature { inode: 7, size: 4, modified_ns: 0, changed_ns }.tag();
            file_tag::may_hide_a_change(&tag.0, DateTime::from_timestamp(100, 500_000_000).unwrap())
        };
        assert!(may_hide(100 * NS_PER_SECOND));
        assert!(!may_hide(90 * NS_PER_SECOND), "it was read later");
        assert!(!may_hide(100 * NS_PER_SECOND + 1), "the times are exact");
    }
}
