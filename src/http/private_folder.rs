//! The folder of the private socket, below the system's folder for temporary files.
//!
//! A process that is killed leaves its folder; the next one that starts removes it.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

const PREFIX: &str = "lakemill-http-";
/// Leftovers that one start removes.
const SWEPT_MAX: usize = 1_000;

/// A folder that only this user can enter; gone when dropped.
pub(super) struct PrivateFolder {
    folder: TempDir,
    /// Of the folder itself, locked as long as the process lives.
    _lock: File,
}

impl PrivateFolder {
    /// Makes the folder, and removes those of processes that are gone.
    ///
    /// # Errors
    /// The folder for temporary files can't be written.
    pub(super) fn make() -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(root: &Path) -> io::Result<Self> {
        sweep(root);
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(root)?;
        let lock = File::open(folder.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What can't be read or removed is left.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    let named =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
    for folder in entries.flatten().map(|entry| entry.path()).filter(named).filter(|path| is_left(path)).take(SWEPT_MAX)
    {
        match std::fs::remove_dir_all(&folder) {
            Ok(()) => {
                tracing::info!(folder = %folder.display(), "removed the temporary folder of a process that is gone")
            }
            Err(error) => tracing::debug!(folder = %folder.display(), %error, "a temporary folder can't be removed"),
        }
    }
}

/// Whether the folder is ours and nobody listens there. One without a socket may just be made; one with a socket is locked
/// by its process, or, of version 0.1, answers.
fn is_left(folder: &Path) -> bool {
    let owned = std::fs::symlink_metadata(folder).is_ok_and(|f| f.is_dir() && f.uid() == geteuid().as_raw());
    let Some(entries) = owned.then(|| std::fs::read_dir(folder).ok()).flatten() else { return false };
    let is_socket = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let sockets: Vec<PathBuf> = entries.flatten().filter(is_socket).map(|entry| entry.path()).collect();
    let is_locked = || {
        let lock = File::open(folder).map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err());
        lock.unwrap_or(true)
    };
    !sockets.is_empty() && !is_locked() && sockets.iter().all(|socket| is_refused(socket))
}

fn is_refused(path: &Path) -> bool {
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // A server that is busy is not waited for.
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    connect().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn folders_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        // A listener that is dropped leaves its socket, as one does that is killed.
        let dead = put("lakemill-http-dead");
        drop(UnixListener::bind(dead.join("0")).unwrap());
        let old = put("lakemill-http-of-0.1");
        let _listens = UnixListener::bind(old.join("0")).unwrap();
        let made = put("lakemill-http-just-made");
        let other = put("other-http-dead");
        drop(UnixListener::bind(other.join("0")).unwrap());
        let living = PrivateFolder::make_in(root.path()).unwrap();
        drop(UnixListener::bind(living.path().join("0")).unwrap());
        let next = PrivateFolder::make_in(root.path()).unwrap();
        assert!(!dead.exists());
        for path in [&old, &made, &other, living.path(), next.path()] {
            assert!(path.exists(), "{}", path.display());
        }
    }
}
