//! Maps keys to folders and paths.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::domain::limits::KEY_BYTES_MAX;
use crate::ports::store::{Bucket, StoreError, StoreResult};

use super::error::{invalid_key, not_found, store_error};

/// The store's own folder in each writable folder.
pub const OWN_FOLDER: &str = ".lakemill";

/// In [`Mount::hide`]: every file and folder whose name starts with a dot.
pub const DOT_FILES: &str = ".*";

/// Longest file name of common file systems, in bytes.
const SEGMENT_BYTES_MAX: usize = 255;

/// Maps the keys of a bucket under a prefix to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub bucket: Bucket,
    /// Empty, or ending in `/`: `pipelines/local/`.
    pub prefix: String,
    pub dir: PathBuf,
    pub writable: bool,
    /// Paths relative to `dir` that are not objects, with everything below; and [`DOT_FILES`].
    pub hide: Vec<String>,
}

/// The names of the bucket folders in a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketNames {
    pub pipelines: String,
    pub lake: String,
    pub warehouse: String,
}

impl Default for BucketNames {
    fn default() -> Self {
        Self { pipelines: "pipelines".to_owned(), lake: "lake".to_owned(), warehouse: "warehouse".to_owned() }
    }
}

impl BucketNames {
    pub(super) fn all(&self) -> [&str; 3] {
        [&self.pipelines, &self.lake, &self.warehouse]
    }

    fn of(&self, bucket: Bucket) -> &str {
        match bucket {
            Bucket::Pipelines => &self.pipelines,
            Bucket::Lake => &self.lake,
            Bucket::Warehouse => &self.warehouse,
        }
    }
}

/// Why folders can't be a store.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("`{}` is named twice: expected different folders", .dir.display())]
    SameFolder { dir: PathBuf },
    #[error("the {bucket} prefixes `{prefix}` and `{other}` overlap")]
    OverlappingPrefix { bucket: Bucket, prefix: String, other: String },
    #[error("`{found}` is not a prefix of a mount: expected nothing, or segments that each end in `/`")]
    BadPrefix { found: String },
    #[error("`{found}` is not a bucket name on the file store: expected the name of one folder")]
    BadBucketName { found: String },
    #[error("`{}`: {source}", .dir.display())]
    Io { dir: PathBuf, source: io::Error },
}

/// A mount with resolved paths.
pub(super) struct Folder {
    pub(super) bucket: Bucket,
    pub(super) prefix: String,
    /// Absolute; without links as far as it exists.
    pub(super) dir: PathBuf,
    pub(super) writable: bool,
    /// If missing, it is an error rather than empty.
    pub(super) must_exist: bool,
    hide: Vec<String>,
    hide_dot_files: bool,
    /// The other folders of this store, which links must not lead to.
    pub(super) others: Vec<PathBuf>,
    /// Cleared once the file system reported that it has no extended attributes.
    pub(super) has_xattrs: AtomicBool,
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} -> {}", self.bucket, self.prefix, self.dir.display())
    }
}

impl Folder {
    fn new(mount: Mount, must_exist: bool) -> Result<Self, MountError> {
        let Mount { bucket, prefix, dir, writable, mut hide } = mount;
        if !prefix.is_empty() && (!prefix.ends_with('/') || check_segments(&prefix[..prefix.len() - 1]).is_err()) {
            return Err(MountError::BadPrefix { found: prefix });
        }
        let dir = resolved(&dir).map_err(|source| MountError::Io { dir, source })?;
        let hide_dot_files = hide.iter().any(|h| h == DOT_FILES);
        hide.retain(|h| h != DOT_FILES);
        let others = Vec::new();
        let has_xattrs = AtomicBool::new(true);
        Ok(Self { bucket, prefix, dir, writable, must_exist, hide, hide_dot_files, others, has_xattrs })
    }

    /// Whether links are followed.
    pub(super) fn follows_links(&self) -> bool {
        !self.writable
    }

    /// Whether the relative `path`, or a folder above it, is hidden.
    pub(super) fn hides(&self, path: &str) -> bool {
        let within =
            |outer: &str| path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        within(OWN_FOLDER)
            || self.hide.iter().any(|h| within(h))
            || (self.hide_dot_files && path.split('/').any(|segment| segment.starts_with('.')))
    }

    pub(super) fn missing(&self) -> StoreError {
        StoreError::BucketNotFound { bucket: self.bucket, name: self.dir.display().to_string() }
    }

    /// Opens the folder; `None` if it is missing and may be.
    pub(super) fn open_root(&self) -> StoreResult<Option<OwnedFd>> {
        match openat(CWD, &self.dir, DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT | Errno::NOTDIR) if self.must_exist => Err(self.missing()),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(store_error(self.bucket, &self.prefix, "opening the folder of", errno.into())),
        }
    }

    /// Creates the folder durably if it is missing and may be.
    pub(super) fn create(&self) -> io::Result<()> {
        if self.must_exist || self.dir.is_dir() {
            return Ok(());
        }
        let existing = self.dir.ancestors().find(|a| a.is_dir()).unwrap_or(Path::new("/")).to_owned();
        std::fs::create_dir_all(&self.dir)?;
        for made in self.dir.ancestors().take_while(|a| **a != existing) {
            if let Some(parent) = made.parent() {
                rustix::fs::fsync(rustix::fs::open(parent, DIRECTORY, Mode::empty())?)?;
            }
        }
        Ok(())
    }

    /// Flags for opening a folder or file below the root.
    pub(super) fn flags(&self, flags: OFlags) -> OFlags {
        if self.follows_links() { flags } else { flags | OFlags::NOFOLLOW }
    }
}

pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether an error means that no file has the path.
pub(super) fn is_absent(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// A key with its folder and path.
pub(super) struct ObjectPath<'a> {
    pub(super) bucket: Bucket,
    pub(super) key: &'a str,
    pub(super) folder: &'a Folder,
    /// Relative to the folder.
    pub(super) relative: &'a str,
}

impl ObjectPath<'_> {
    pub(super) fn invalid(&self, reason: impl Into<String>) -> StoreError {
        invalid_key(self.bucket, self.key, reason)
    }

    pub(super) fn not_found(&self) -> StoreError {
        not_found(self.bucket, self.key)
    }

    pub(super) fn precondition_failed(&self) -> StoreError {
        StoreError::PreconditionFailed { bucket: self.bucket, key: self.key.to_owned() }
    }

    pub(super) fn error(&self, operation: &'static str, source: io::Error) -> StoreError {
        store_error(self.bucket, self.key, operation, source)
    }

    /// Like [`ObjectPath::error`], for an operation that fails if the bucket's folder is missing.
    pub(super) fn error_or_no_bucket(&self, operation: &'static str, source: io::Error) -> StoreError {
        if source.kind() == io::ErrorKind::NotFound && self.folder.must_exist && !self.folder.dir.is_dir() {
            return self.folder.missing();
        }
        self.error(operation, source)
    }
}

/// All folders of a store, sorted by bucket and prefix.
pub(super) struct Folders(Vec<Folder>);

impl Folders {
    pub(super) fn from_root(root: &Path, names: &BucketNames) -> Result<Self, MountError> {
        let mut folders = Vec::new();
        for bucket in Bucket::ALL {
            let name = names.of(bucket);
            if name.contains('/') || name == OWN_FOLDER || check_segments(name).is_err() {
                return Err(MountError::BadBucketName { found: name.to_owned() });
            }
            let mount = Mount { bucket, prefix: String::new(), dir: root.join(name), writable: true, hide: Vec::new() };
            folders.push(Folder::new(mount, true)?);
        }
        Self::checked(folders)
    }

    pub(super) fn from_mounts(mounts: Vec<Mount>) -> Result<Self, MountError> {
        let folders = mounts.into_iter().map(|mount| {
            let must_exist = !mount.writable;
            Folder::new(mount, must_exist)
        });
        Self::checked(folders.collect::<Result<_, _>>()?)
    }

    fn checked(mut folders: Vec<Folder>) -> Result<Self, MountError> {
        folders.sort_by(|a, b| (a.bucket, &a.prefix).cmp(&(b.bucket, &b.prefix)));
        for pair in folders.windows(2) {
            if pair[0].bucket == pair[1].bucket && pair[1].prefix.starts_with(&pair[0].prefix) {
                let (prefix, other) = (pair[0].prefix.clone(), pair[1].prefix.clone());
                return Err(MountError::OverlappingPrefix { bucket: pair[0].bucket, prefix, other });
            }
        }
        let dirs: Vec<PathBuf> = folders.iter().map(|f| f.dir.clone()).collect();
        for (index, folder) in folders.iter_mut().enumerate() {
            for (_, other) in dirs.iter().enumerate().filter(|(i, _)| *i != index) {
                match other.strip_prefix(&folder.dir) {
                    Ok(inner) if inner.as_os_str().is_empty() => {
                        return Err(MountError::SameFolder { dir: other.clone() });
                    }
                    // A path that is not UTF-8 is not a key, so there is nothing to hide.
                    Ok(inner) => folder.hide.extend(inner.to_str().map(str::to_owned)),
                    Err(_) => {}
                }
                folder.others.push(other.clone());
            }
        }
        Ok(Self(folders))
    }

    pub(super) fn all(&self) -> &[Folder] {
        &self.0
    }

    /// The folders of a bucket, in key order.
    pub(super) fn of(&self, bucket: Bucket) -> impl Iterator<Item = &Folder> {
        self.0.iter().filter(move |f| f.bucket == bucket)
    }

    fn path<'a>(&'a self, bucket: Bucket, key: &'a str) -> StoreResult<Option<ObjectPath<'a>>> {
        check_key(key).map_err(|reason| invalid_key(bucket, key, reason))?;
        let found = self.of(bucket).find_map(|folder| Some((folder, key.strip_prefix(folder.prefix.as_str())?)));
        Ok(found.map(|(folder, relative)| ObjectPath { bucket, key, folder, relative }))
    }

    /// `None` if no object can have the key.
    pub(super) fn path_to_read<'a>(&'a self, bucket: Bucket, key: &'a str) -> StoreResult<Option<ObjectPath<'a>>> {
        Ok(self.path(bucket, key)?.filter(|path| !path.folder.hides(path.relative)))
    }

    pub(super) fn path_to_write<'a>(&'a self, bucket: Bucket, key: &'a str) -> StoreResult<ObjectPath<'a>> {
        let Some(path) = self.path(bucket, key)? else {
            return Err(invalid_key(bucket, key, "no folder is mounted for its prefix"));
        };
        if path.folder.hides(path.relative) {
            return Err(path.invalid("the name is reserved, or in a hidden folder"));
        }
        if !path.folder.writable {
            let reason = format!("`{}` is read-only", path.folder.dir.display());
            return Err(StoreError::AccessDenied { bucket, key: key.to_owned(), reason });
        }
        Ok(path)
    }

    pub(super) fn path_or_not_found<'a>(&'a self, bucket: Bucket, key: &'a str) -> StoreResult<ObjectPath<'a>> {
        self.path_to_read(bucket, key)?.ok_or_else(|| not_found(bucket, key))
    }
}

/// Checks that a key is a path below its folder. Applies no normalization: the bytes are the name.
pub(super) fn check_key(key: &str) -> Result<(), &'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Err("it is longer than 1,024 bytes");
    }
    check_segments(key)
}

fn check_segments(path: &str) -> Result<(), &'static str> {
    for segment in path.split('/') {
        match segment {
            "" => return Err("it has an empty segment, which a folder can't store"),
            "." | ".." => return Err("it has a segment `.` or `..`"),
            _ if segment.len() > SEGMENT_BYTES_MAX => return Err("it has a segment longer than 255 bytes"),
            _ if segment.contains('\0') => return Err("it contains a NUL"),
            _ => {}
        }
    }
    Ok(())
}

/// The part before the last `/`.
pub(super) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The part after the last `/`.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Absolute and without links, even if the last parts don't exist yet.
fn resolved(dir: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(dir)?;
    let mut rest = Vec::new();
    for ancestor in absolute.ancestors() {
        match std::fs::canonicalize(ancestor) {
            Ok(mut found) => {
                for part in rest.into_iter().rev() {
                    match part {
                        Component::ParentDir => drop(found.pop()),
                        part => found.push(part),
                    }
                }
                return Ok(found);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => rest.extend(ancestor.components().next_back()),
            Err(error) => return Err(error),
        }
    }
    Ok(absolute)
}
