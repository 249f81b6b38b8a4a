//! Reads a file in the state in which it was opened, or fails.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, linkat, openat, openat2};
use rustix::io::Errno;

use crate::ports::store::{BodyChanged, Bucket, ETag, ObjectMeta, ObjectReader, StoreResult};

use super::etag::{Signature, Tag, is_regular};
use super::folder::{DIRECTORY, Folders, ObjectPath, is_absent};

/// An object's open file.
pub(super) struct OpenObject {
    file: File,
    signature: Signature,
    tag: Tag,
}

impl OpenObject {
    pub(super) fn etag(&self) -> &ETag {
        &self.tag.etag
    }

    /// Whether the content is as this store put it.
    pub(super) fn is_own(&self) -> bool {
        self.tag.is_hash
    }

    pub(super) fn signature(&self) -> Signature {
        self.signature
    }

    pub(super) fn meta(&self, key: &str) -> ObjectMeta {
        meta(key, &self.signature, &self.tag)
    }

    pub(super) fn into_reader(self, key: &str) -> ObjectReader {
        let meta = self.meta(key);
        let remaining = self.signature.size;
        ObjectReader { meta, body: Box::new(Body { object: self, remaining, verified: false }) }
    }

    /// # Errors
    /// An I/O error that wraps [`BodyChanged`] if the file changed since it was opened.
    pub(super) fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let end = range.end.min(self.signature.size);
        let Some(length) = end.checked_sub(range.start).filter(|l| *l > 0) else { return Ok(Vec::new()) };
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut bytes = vec![0; length];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        self.verify()?;
        read.map(|()| bytes)
    }

    /// Hard-links the file to `into`. False where that is not possible: on another file system, one without links, or
    /// where `fs.protected_hardlinks` forbids it.
    ///
    /// A file that others may write in place is not linked, since its content could change. Nor is one without extended
    /// attributes: linking changes the time that its tag is derived from.
    pub(super) fn link(&self, path: &ObjectPath<'_>, into: &Path) -> StoreResult<bool> {
        if !self.is_own() {
            return Ok(false);
        }
        // Links the file that was opened and compared, whatever its key names by now.
        let opened = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(CWD, opened, CWD, into, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(true),
            // Either the last name is gone, or /proc is not mounted.
            Err(Errno::NOENT) if fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0) => {
                Err(path.precondition_failed())
            }
            Err(
                Errno::NOENT
                | Errno::XDEV
                | Errno::PERM
                | Errno::ACCESS
                | Errno::OPNOTSUPP
                | Errno::NOSYS
                | Errno::MLINK,
            ) => Ok(false),
            Err(errno) => Err(path.error("linking", errno.into())),
        }
    }

    /// Fails if the file changed since it was opened. One that this store put is never written again, only unlinked
    /// (which only affects its change time), so its reader gets all of it whatever happens to its name.
    fn verify(&self) -> io::Result<()> {
        let now = Signature::for_file(&self.file)?;
        let same = if self.tag.is_hash { now.same_content(&self.signature) } else { now == self.signature };
        if same { Ok(()) } else { Err(BodyChanged.into()) }
    }
}

struct Body {
    object: OpenObject,
    remaining: u64,
    verified: bool,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut read = 0;
        if self.remaining > 0 {
            let max = usize::try_from(self.remaining).map_or(buffer.len(), |r| r.min(buffer.len()));
            read = (&self.object.file).read(&mut buffer[..max])?;
            self.remaining -= read as u64;
            if read == 0 {
                self.object.verify()?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if self.remaining == 0 && !self.verified {
            self.object.verify()?;
            self.verified = true;
        }
        Ok(read)
    }
}

pub(super) fn meta(key: &str, signature: &Signature, tag: &Tag) -> ObjectMeta {
    ObjectMeta {
        key: key.to_owned(),
        size: signature.size,
        etag: Some(tag.etag.clone()),
        modified: signature.modified(),
    }
}

/// Opens an object; `None` if it doesn't exist.
pub(super) fn open(path: &ObjectPath<'_>, operation: &'static str) -> StoreResult<Option<OpenObject>> {
    let Some(root) = path.folder.open_root()? else { return Ok(None) };
    // A named pipe must not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = match open_below(&root, path, flags) {
        Ok(fd) => fd,
        // ENXIO: a socket.
        Err(errno) if is_absent(errno) || errno == Errno::NXIO => return Ok(None),
        Err(errno) => return Err(path.error(operation, errno.into())),
    };
    let stat = fstat(&fd).map_err(|errno| path.error(operation, errno.into()))?;
    if !is_regular(&stat) {
        return Ok(None);
    }
    let signature = Signature::of(&stat);
    let tag = Tag::for_file(path.folder, &fd, &signature);
    Ok(Some(OpenObject { file: File::from(fd), signature, tag }))
}

/// Opens a file below a folder, by one system call where the kernel has `openat2` (5.6). Follows no links, unless the
/// folder does.
fn open_below(root: &OwnedFd, path: &ObjectPath<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.folder.follows_links() {
        return openat(root, path.relative, flags, Mode::empty());
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(root, path.relative, flags, Mode::empty(), resolve) {
        // PERM: of a filter of system calls that doesn't know it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_steps(root, path, flags),
        opened => opened,
    }
}

/// [`open_below`] for kernels without `openat2`.
fn open_by_steps(root: &OwnedFd, path: &ObjectPath<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let open = |fd: &OwnedFd, segment, flags| openat(fd, segment, path.folder.flags(flags), Mode::empty());
    let Some((parent, name)) = path.relative.rsplit_once('/') else { return open(root, path.relative, flags) };
    let mut segments = parent.split('/');
    let mut fd = open(root, segments.next().unwrap_or_default(), DIRECTORY)?;
    for segment in segments {
        fd = open(&fd, segment, DIRECTORY)?;
    }
    open(&fd, name, flags)
}

/// Opens an object that must exist, with this tag if one is given.
pub(super) fn open_existing<'a>(
    folders: &'a Folders,
    bucket: Bucket,
    key: &'a str,
    if_match: Option<&ETag>,
) -> StoreResult<(ObjectPath<'a>, OpenObject)> {
    let path = folders.path_or_not_found(bucket, key)?;
    let object = open(&path, "opening")?.ok_or_else(|| path.not_found())?;
    if if_match.is_some_and(|tag| tag != object.etag()) {
        return Err(path.precondition_failed());
    }
    Ok((path, object))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::adapters::fs::folder::Mount;

    #[test]
    fn one_call_and_steps_open_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for file in ["top", "a/b/file"] {
            std::fs::write(dir.path().join(file), file).unwrap();
        }
        symlink("b", dir.path().join("a/folder-link")).unwrap();
        symlink("b/file", dir.path().join("a/file-link")).unwrap();
        let mount = |writable| Mount {
            bucket: Bucket::Lake,
            prefix: String::new(),
            dir: dir.path().into(),
            writable,
            hide: vec![],
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        for writable in [true, false] {
            let folders = Folders::from_mounts(vec![mount(writable)]).unwrap();
            for (key, is_linked, exists) in [
                ("top", false, true),
                ("a/b/file", false, true),
                ("a/folder-link/file", true, true),
                ("a/file-link", true, true),
                ("a/b/none", false, false),
                ("top/file", false, false),
            ] {
                let path = folders.path_to_read(Bucket::Lake, key).unwrap().unwrap();
                let root = path.folder.open_root().unwrap().unwrap();
                let opened = [open_below(&root, &path, flags), open_by_steps(&root, &path, flags)];
                for fd in opened {
                    assert_eq!(fd.is_ok(), exists && !(is_linked && writable), "{key}, writable: {writable}");
                    assert!(fd.is_ok() || fd.is_err_and(is_absent), "{key}");
                }
            }
        }
    }
}
