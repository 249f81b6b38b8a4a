//! Limits an output folder to one run at a time.

use std::io;
use std::path::{Path, PathBuf};

use super::folder::OWN_FOLDER;
use crate::system::ProcessLock;

/// Mode of the lock file, as of any file that a run creates.
const LOCK_MODE: u32 = 0o666;

/// Held while a run writes a folder; released when dropped or when the process ends.
#[derive(Debug)]
pub struct OutputLock {
    _lock: ProcessLock,
}

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum OutputLockError {
    #[error("`{}` is being written by another run", .dir.display())]
    Busy { dir: PathBuf },
    #[error("can't write `{}`: {source}", .dir.display())]
    Io { dir: PathBuf, source: io::Error },
}

impl OutputLock {
    /// Takes the lock of `dir`, which is created if missing. Doesn't wait.
    ///
    /// # Errors
    /// [`OutputLockError`] if another run holds it, or the folder can't be written.
    pub fn acquire(dir: &Path) -> Result<Self, OutputLockError> {
        let dir = || dir.to_owned();
        let lock = || {
            let folder = dir().join(OWN_FOLDER);
            std::fs::create_dir_all(&folder)?;
            ProcessLock::try_acquire(&folder.join("run.lock"), LOCK_MODE)
        };
        match lock() {
            Ok(Ok(lock)) => Ok(Self { _lock: lock }),
            Ok(Err(_)) => Err(OutputLockError::Busy { dir: dir() }),
            Err(source) => Err(OutputLockError::Io { dir: dir(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_run_on_an_output_folder_is_rejected_until_the_first_ends() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("new/out");
        let first = OutputLock::acquire(&output).unwrap();
        let error = OutputLock::acquire(&output).unwrap_err();
        assert_eq!(error.to_string(), format!("`{}` is being written by another run", output.display()));
        drop(first);
        OutputLock::acquire(&output).unwrap();
    }

    #[test]
    fn error_names_an_output_that_is_not_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("file");
        std::fs::write(&output, "x").unwrap();
        assert!(OutputLock::acquire(&output).unwrap_err().to_string().contains(&output.display().to_string()));
    }
}
