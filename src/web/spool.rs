//! Spools request bodies to disk before they go to the store.
//!
//! Invariants: a file is deleted with its value or its process; a handler spools at most its route's limit, which bounds
//! the disk space used.

use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::domain::digest::hex;
use crate::http::{ApiError, BodyError, ErrorCode};
use crate::system::{ProcessFolder, process_folder};

/// Read at a time, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// A folder of spooled bodies; several processes may share it.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    /// This process's subfolder, created for the first body.
    own: Mutex<Option<Arc<ProcessFolder>>>,
}

/// A complete body in a file, which is deleted with this value unless it was moved.
#[derive(Debug)]
pub struct Spooled {
    path: PathBuf,
    _folder: Arc<ProcessFolder>,
    /// Bytes.
    pub size: u64,
    /// In hex.
    pub sha256: String,
}

impl Spool {
    /// Deletes what dead processes left in `dir`, which is created for the first body.
    pub fn new(dir: PathBuf) -> Self {
        process_folder::sweep(&dir);
        Self { dir, own: Mutex::default() }
    }

    /// Reads a request's body to its end.
    ///
    /// # Errors
    /// The body's own error; `overloaded` if the disk is full; `internal` if the folder can't be used.
    pub fn take(&self, body: &mut dyn Read) -> Result<Spooled, ApiError> {
        let (mut file, mut spooled) = self.make().map_err(|error| write_error(&error))?;
        let mut hasher = Sha256::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = match body.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(write_error(&error)),
            };
            hasher.update(&piece[..read]);
            file.write_all(&piece[..read]).map_err(|error| write_error(&error))?;
            spooled.size += read as u64;
        }
        spooled.sha256 = hex(&hasher.finalize());
        Ok(spooled)
    }

    fn make(&self) -> io::Result<(File, Spooled)> {
        let folder = self.folder()?;
        let path = folder.path().join(uuid::Uuid::new_v4().simple().to_string());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((file, Spooled { path, _folder: folder, size: 0, sha256: String::new() }))
    }

    fn folder(&self) -> io::Result<Arc<ProcessFolder>> {
        let mut own = self.own.lock();
        // The cache folder may have been emptied.
        if let Some(folder) = own.as_ref().filter(|folder| folder.path().is_dir()) {
            return Ok(Arc::clone(folder));
        }
        let name = format!("uploads-{}", uuid::Uuid::new_v4().simple());
        let folder = Arc::new(ProcessFolder::make(&self.dir, &name)?);
        *own = Some(Arc::clone(&folder));
        Ok(folder)
    }
}

impl Spooled {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // The store may have moved it. Leftovers are swept at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The error for a failure to spool a body.
pub(super) fn write_error(error: &io::Error) -> ApiError {
    match (BodyError::within(error), error.kind()) {
        (Some(body), _) => body.into(),
        (None, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            ApiError::caused(ErrorCode::Overloaded, format!("disk full during an upload: {error}"))
        }
        (None, _) => ApiError::internal(format!("spooling an upload failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields some bytes, then an error.
    struct FailingReader(usize);

    impl Read for FailingReader {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(self.0);
            self.0 -= most;
            if most == 0 { Err(BodyError::Truncated { received: 9 }.into()) } else { Ok(most) }
        }
    }

    fn count(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn spooled_file_is_deleted_with_its_value() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::new(home.path().join("uploads"));
        let spooled = spool.take(&mut &b"abc"[..]).unwrap();
        assert_eq!((spooled.size, std::fs::read(spooled.path()).unwrap()), (3, b"abc".to_vec()));
        assert_eq!(spooled.sha256, crate::domain::digest::sha256_hex(b"abc"));
        let path = spooled.path().to_owned();
        drop(spooled);
        assert!(!path.exists());
        drop(spool);
        assert_eq!(count(&home.path().join("uploads")), 0);
    }

    #[test]
    fn interrupted_body_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::new(home.path().to_owned());
        let error = spool.take(&mut FailingReader(1 << 20)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidRequest);
        assert_eq!(count(spool.folder().unwrap().path()), 0);
    }

    #[test]
    fn emptied_spool_folder_is_recreated() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::new(home.path().to_owned());
        let held = spool.take(&mut &b"abc"[..]).unwrap();
        drop(spool);
        drop(Spool::new(home.path().to_owned()));
        assert!(held.path().exists());
        let spool = Spool::new(home.path().to_owned());
        drop(spool.take(&mut &b"abc"[..]).unwrap());
        std::fs::remove_dir_all(spool.folder().unwrap().path()).unwrap();
        assert!(spool.take(&mut &b"abc"[..]).is_ok());
    }
}
