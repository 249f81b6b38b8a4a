//! Walks the files of a folder and its subfolders in key order, from any position.

use std::path::PathBuf;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, fstat, openat, statat};
use rustix::io::Errno;

use crate::domain::limits::{KEY_BYTES_MAX, SKIPPED_KEYS_MAX};
use crate::ports::store::{ObjectMeta, StoreResult};

use super::error::store_error;
use super::etag::{Signature, Tag, is_regular};
use super::folder::{DIRECTORY, Folder, check_key, is_absent};
use super::read;
use super::snapshot::{self, Entries, FolderSnapshots};

/// Nesting of linked folders, which bounds the paths that links between siblings create.
const LINKS_DEEP_MAX: usize = 4;
/// Attempts to read a file whose attribute doesn't match its stat.
const TAG_TRIES_MAX: usize = 4;

/// Where a page starts.
#[derive(Debug, Clone)]
pub(super) enum WalkStart {
    Start,
    /// After this key.
    After(String),
    /// After every key with this prefix.
    Past(String),
}

impl WalkStart {
    pub(super) fn token(&self) -> String {
        match self {
            Self::Start => String::new(),
            Self::After(key) => format!("k{key}"),
            Self::Past(prefix) => format!("p{prefix}"),
        }
    }

    /// Whether a key is after the position.
    fn allows(&self, key: &str) -> bool {
        match self {
            Self::Start => true,
            Self::After(last) => key > last.as_str(),
            Self::Past(prefix) => key > prefix.as_str() && !key.starts_with(prefix.as_str()),
        }
    }

    /// Whether a key that starts with `folder` may be after the position.
    fn allows_in(&self, folder: &str) -> bool {
        match self {
            Self::Start => true,
            Self::After(last) => folder > last.as_str() || last.starts_with(folder),
            Self::Past(prefix) => {
                !folder.starts_with(prefix.as_str()) && (folder > prefix.as_str() || prefix.starts_with(folder))
            }
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Start => "",
            Self::After(text) | Self::Past(text) => text,
        }
    }
}

/// A file that the walk reached.
pub(super) struct FoundFile {
    key: String,
    /// Where its name starts in the key.
    name_at: usize,
}

impl FoundFile {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn into_key(self) -> String {
        self.key
    }
}

struct Level {
    fd: OwnedFd,
    path: PathBuf,
    /// Prefix of the keys in it.
    prefix: String,
    id: (u64, u64),
    is_link: bool,
    entries: Entries,
    next: usize,
}

pub(super) struct Walk<'a> {
    folder: &'a Folder,
    snapshots: &'a FolderSnapshots,
    prefix: &'a str,
    from: WalkStart,
    /// Whether cached folders may be used.
    again: bool,
    levels: Vec<Level>,
    skipped: Vec<String>,
}

impl<'a> Walk<'a> {
    /// `None` if the folder has no key with that prefix.
    pub(super) fn start(
        folder: &'a Folder,
        snapshots: &'a FolderSnapshots,
        prefix: &'a str,
        from: WalkStart,
        again: bool,
    ) -> StoreResult<Option<Self>> {
        let Some(fd) = folder.open_root()? else { return Ok(None) };
        let mut walk = Self { folder, snapshots, prefix, from, again, levels: Vec::new(), skipped: Vec::new() };
        let may_hold = prefix.starts_with(&folder.prefix) || folder.prefix.starts_with(prefix);
        if may_hold && walk.from.allows_in(&folder.prefix) {
            walk.enter(fd, folder.dir.clone(), folder.prefix.clone(), false)?;
        }
        Ok(Some(walk))
    }

    /// Continues from a later position.
    pub(super) fn skip(&mut self, from: WalkStart) {
        while self.levels.last().is_some_and(|level| !from.allows_in(&level.prefix)) {
            self.levels.pop();
        }
        self.from = from;
    }

    pub(super) fn next(&mut self) -> StoreResult<Option<FoundFile>> {
        while let Some(level) = self.levels.last_mut() {
            let Some(entry) = level.entries.get(level.next) else {
                self.levels.pop();
                continue;
            };
            level.next += 1;
            let key = format!("{}{}", level.prefix, entry.name);
            let is_text = entry.is_text;
            if !entry.is_folder() {
                if key.starts_with(self.prefix) && self.from.allows(&key) && self.is_key(&key, is_text) {
                    let name_at = self.levels.last().map_or(0, |l| l.prefix.len());
                    return Ok(Some(FoundFile { key, name_at }));
                }
                continue;
            }
            let may_hold = key.starts_with(self.prefix) || self.prefix.starts_with(&key);
            if may_hold && self.from.allows_in(&key) && !self.folder.hides(self.path_of(key.trim_end_matches('/'))) {
                self.descend(key)?;
            }
        }
        Ok(None)
    }

    /// Metadata of a file; `None` if it was deleted.
    pub(super) fn meta(&self, file: &FoundFile) -> StoreResult<Option<ObjectMeta>> {
        let Some(level) = self.levels.last() else { return Ok(None) };
        let name = &file.key[file.name_at..];
        let flags = if self.folder.follows_links() { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let mut before = None;
        for _ in 0..TAG_TRIES_MAX {
            let signature = match statat(&level.fd, name, flags) {
                Ok(stat) if is_regular(&stat) => Signature::of(&stat),
                Ok(_) => return Ok(None),
                Err(errno) if is_absent(errno) => return Ok(None),
                Err(errno) => return Err(self.error(&file.key, "reading the metadata of", errno)),
            };
            let tag = Tag::for_path(self.folder, &level.path.join(name), &signature);
            // The stat is stable: the attribute belongs to an older state.
            let tag = tag.or_else(|| (before == Some(signature)).then(|| Tag::for_stat(&signature)));
            if let Some(tag) = tag {
                return Ok(Some(read::meta(&file.key, &signature, &tag)));
            }
            before = Some(signature);
        }
        Ok(before.map(|signature| read::meta(&file.key, &signature, &Tag::for_stat(&signature))))
    }

    fn descend(&mut self, key: String) -> StoreResult<()> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let name = &key[level.prefix.len()..key.len() - 1];
        let is_link = level.entries.get(level.next - 1).is_some_and(|entry| entry.is_link);
        if is_link && self.levels.iter().filter(|l| l.is_link).count() == LINKS_DEEP_MAX {
            tracing::warn!(folder = %key, "folder skipped: links are nested too deeply");
            return Ok(());
        }
        let path = level.path.join(name);
        match openat(&level.fd, name, self.folder.flags(DIRECTORY), Mode::empty()) {
            Ok(fd) => self.enter(fd, path, key, is_link),
            Err(errno) if is_absent(errno) => Ok(()),
            Err(errno) => Err(self.error(&key, "listing", errno)),
        }
    }

    fn enter(&mut self, fd: OwnedFd, path: PathBuf, prefix: String, is_link: bool) -> StoreResult<()> {
        let stat = fstat(&fd).map_err(|errno| self.error(&prefix, "listing", errno))?;
        let id = (stat.st_dev, stat.st_ino);
        if self.levels.iter().any(|level| level.id == id) {
            tracing::warn!(folder = %prefix, "folder skipped: the link leads to a folder above it");
            return Ok(());
        }
        // Above the prefix only one name matters.
        let next_name = self.prefix.strip_prefix(&prefix).and_then(|rest| rest.split_once('/'));
        let entries = match next_name {
            Some((name, _)) => snapshot::entry(self.folder, &fd, &path, name),
            None => {
                let entries = self.snapshots.entries(self.folder, &fd, &path, self.again);
                entries.map_err(|e| store_error(self.folder.bucket, &prefix, "listing", e))?
            }
        };
        let next = first(&entries, &prefix, self.from.text()).max(first(&entries, &prefix, self.prefix));
        self.levels.push(Level { fd, path, prefix, id, is_link, entries, next });
        Ok(())
    }

    /// The files reached so far whose paths are not valid keys.
    pub(super) fn into_skipped(self) -> Vec<String> {
        self.skipped
    }

    /// Whether a file's path is a valid key (UTF-8 and not too long) and not hidden.
    fn is_key(&mut self, key: &str, is_text: bool) -> bool {
        if self.folder.hides(self.path_of(key)) {
            return false;
        }
        let checked = check_key(key);
        if checked.is_ok() && is_text {
            return true;
        }
        let shown: String = key.chars().take(KEY_BYTES_MAX).collect();
        if let Err(reason) = checked {
            tracing::warn!(key = %shown, reason, "file skipped: its path is not a valid key");
        }
        if self.skipped.len() < SKIPPED_KEYS_MAX {
            self.skipped.push(shown);
        }
        false
    }

    fn path_of<'k>(&self, key: &'k str) -> &'k str {
        &key[self.folder.prefix.len()..]
    }

    fn error(&self, key: &str, operation: &'static str, errno: Errno) -> crate::ports::store::StoreError {
        store_error(self.folder.bucket, key, operation, errno.into())
    }
}

/// The first entry of a folder that may be at or after `text`.
fn first(entries: &Entries, prefix: &str, text: &str) -> usize {
    let Some(rest) = text.strip_prefix(prefix) else { return 0 };
    let segment = rest.find('/').map_or(rest, |end| &rest[..=end]);
    entries.partition_point(|entry| &*entry.name < segment)
}
