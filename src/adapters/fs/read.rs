//! Reading one file as it was when it was opened, or not at all.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags, fstat, openat};

use crate::ports::store::{BodyChanged, Bucket, ETag, ObjectMeta, ObjectReader, StoreResult};

use super::FsStore;
use super::error::Place;
use super::etag::{Signature, Tag, is_regular};
use super::folder::{DIRECTORY, is_absent};

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

    /// Whether it is as this store put it.
    pub(super) fn is_ours(&self) -> bool {
        self.tag.is_hash
    }

    pub(super) fn file(&self) -> &File {
        &self.file
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
    /// [`BodyChanged`] inside if the file changed while it was read.
    pub(super) fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let end = range.end.min(self.signature.size);
        let Some(length) = end.checked_sub(range.start).filter(|l| *l > 0) else { return Ok(Vec::new()) };
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut bytes = vec![0; length];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        self.verify()?;
        read.map(|()| bytes)
    }

    /// Whether the file is still what it was when it was opened. One that this store put is never written again, only
    /// unlinked (which changes its change time alone), so its reader has it whole whatever happens to its name.
    fn verify(&self) -> io::Result<()> {
        let now = Signature::of_file(&self.file)?;
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
            let most = usize::try_from(self.remaining).map_or(buffer.len(), |r| r.min(buffer.len()));
            read = (&self.object.file).read(&mut buffer[..most])?;
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

/// Opens an object; `None` if there is none of that key.
pub(super) fn open(place: &Place<'_>, operation: &'static str) -> StoreResult<Option<OpenObject>> {
    let Some(mut fd) = place.folder.open_root()? else { return Ok(None) };
    let (parent, name) = place.path.rsplit_once('/').map_or((None, place.path), |(parent, name)| (Some(parent), name));
    let directory = place.folder.flags(DIRECTORY);
    // A named pipe must not hold us up.
    let file = place.folder.flags(OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK);
    let steps = parent.into_iter().flat_map(|p| p.split('/')).map(|s| (s, directory)).chain([(name, file)]);
    for (segment, flags) in steps {
        fd = match openat(&fd, segment, flags, Mode::empty()) {
            Ok(fd) => fd,
            // ENXIO: a socket.
            Err(errno) if is_absent(errno) || errno == rustix::io::Errno::NXIO => return Ok(None),
            Err(errno) => return Err(place.error(operation, errno.into())),
        };
    }
    let stat = fstat(&fd).map_err(|errno| place.error(operation, errno.into()))?;
    if !is_regular(&stat) {
        return Ok(None);
    }
    let signature = Signature::of(&stat);
    let tag = Tag::of_file(place.folder, &fd, &signature);
    Ok(Some(OpenObject { file: File::from(fd), signature, tag }))
}

impl FsStore {
    /// Opens an object that must be there, with this tag if one is given.
    pub(super) fn object<'a>(
        &'a self,
        bucket: Bucket,
        key: &'a str,
        if_match: Option<&ETag>,
    ) -> StoreResult<(Place<'a>, OpenObject)> {
        let place = self.folders.place_or_not_found(bucket, key)?;
        let object = open(&place, "opening")?.ok_or_else(|| place.not_found())?;
        if if_match.is_some_and(|tag| tag != object.etag()) {
            return Err(place.precondition_failed());
        }
        Ok((place, object))
    }
}
