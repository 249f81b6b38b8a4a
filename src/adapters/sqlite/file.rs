//! The file: made for its owner alone, on a disk of this machine.

use parking_lot::Mutex;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::error::{Fault, Outcome};
use super::network;

/// Which file a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// `None` if there is no file.
pub(super) fn id(path: &Path) -> Option<FileId> {
    let meta = std::fs::metadata(path).ok()?;
    Some(FileId { device: meta.dev(), inode: meta.ino() })
}

/// Makes the file and its folder where they are missing, and looks at where they lie.
pub(super) fn prepare(path: &Path) -> Outcome<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if let Some(kind) = network::kind(folder)? {
        return Err(Fault::Refused(format!(
            "`{}` lies on a network file system ({kind}), whose locks can't be relied on: put the file on a disk of \
             this machine, or use Redis where several machines share the queue",
            path.display()
        )));
    }
    create(path)
}

fn create(path: &Path) -> Outcome<()> {
    // Closing a file takes the process's locks on it away. So it is opened here only if it is new, and no thread of
    // ours can have opened it through SQLite meanwhile.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    if path.exists() {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}
