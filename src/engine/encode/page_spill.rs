//! Spills finished pages of column chunks until the end of their row group, while memory is short.
//!
//! Invariant: spilled pages read back unchanged; their space is freed once they are dropped.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pwritev};

/// Parts per write: the system's maximum (`IOV_MAX` on Linux).
const SLICES_MAX: usize = 1_024;

/// The spill file; deleted when dropped.
#[derive(Debug)]
pub struct PageSpill {
    path: PathBuf,
    file: File,
    end: AtomicU64,
}

/// A section of the spill file.
#[derive(Debug)]
pub(super) struct SpilledPages {
    page_spill: Arc<PageSpill>,
    at: u64,
    length: u64,
}

impl PageSpill {
    /// Creates the file.
    ///
    /// # Errors
    /// If the file exists or can't be created.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { path, file, end: AtomicU64::new(0) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PageSpill {
    fn drop(&mut self) {
        // The scratch folder is deleted at the end of the run; this frees the space earlier.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl SpilledPages {
    /// Writes `parts` one after the other.
    pub(super) fn new<'a>(page_spill: &Arc<PageSpill>, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<Self> {
        let mut slices: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
        let length = slices.iter().map(|slice| slice.len() as u64).sum();
        let at = page_spill.end.fetch_add(length, Ordering::Relaxed);
        let (mut left, mut end) = (&mut slices[..], at);
        // Skips empty parts, since writing nothing would be an error.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match pwritev(&page_spill.file, &left[..left.len().min(SLICES_MAX)], end) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    end += written as u64;
                    IoSlice::advance_slices(&mut left, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { page_spill: Arc::clone(page_spill), at, length })
    }

    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Reads from byte `from`; 0 at the end.
    pub(super) fn read(&self, from: u64, out: &mut [u8]) -> io::Result<usize> {
        let most = self.length.saturating_sub(from).min(out.len() as u64) as usize;
        if most == 0 {
            return Ok(0);
        }
        match self.page_spill.file.read_at(&mut out[..most], self.at + from)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "spilled pages are missing")),
            read => Ok(read),
        }
    }
}

impl Drop for SpilledPages {
    fn drop(&mut self) {
        // Without support by the file system, the space is freed with the file.
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.page_spill.file, flags, self.at, self.length.max(1));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn spilled_pages_read_back_and_free_their_space() {
        let folder = tempfile::tempdir().unwrap();
        let page_spill = Arc::new(PageSpill::create(folder.path().join("spilled-0")).unwrap());
        let first = SpilledPages::new(&page_spill, [&[7; 1 << 20][..]].into_iter()).unwrap();
        let second = SpilledPages::new(&page_spill, [&b"12"[..], b"", b"345"].into_iter()).unwrap();
        let mut out = [0; 4];
        assert_eq!((second.read(0, &mut out).unwrap(), &out), (4, b"1234"));
        assert_eq!((second.read(4, &mut out).unwrap(), out[0]), (1, b'5'));
        assert_eq!((second.read(5, &mut out).unwrap(), first.len()), (0, 1 << 20));
        let blocks = || std::fs::metadata(page_spill.path()).unwrap().blocks();
        let before = blocks();
        drop(first);
        assert!(blocks() < before, "{before} blocks before, {} after", blocks());
        let path = page_spill.path().to_owned();
        drop((second, page_spill));
        assert!(!path.exists());
    }

    #[test]
    fn more_parts_than_iov_max_are_spilled() {
        let folder = tempfile::tempdir().unwrap();
        let page_spill = Arc::new(PageSpill::create(folder.path().join("spilled-0")).unwrap());
        let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * at) >> 5) as u8).collect();
        let spilled = SpilledPages::new(&page_spill, bytes.chunks(7)).unwrap();
        let mut out = vec![0; bytes.len()];
        assert_eq!((spilled.read(0, &mut out).unwrap(), spilled.len()), (bytes.len(), bytes.len() as u64));
        assert!(out == bytes);
    }

    #[test]
    fn truncated_spill_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let page_spill = Arc::new(PageSpill::create(folder.path().join("spilled-0")).unwrap());
        let spilled = SpilledPages::new(&page_spill, [&b"12345"[..]].into_iter()).unwrap();
        page_spill.file.set_len(0).unwrap();
        assert_eq!(spilled.read(0, &mut [0; 4]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(PageSpill::create(page_spill.path().to_owned()).is_err(), "its name is taken");
    }
}
