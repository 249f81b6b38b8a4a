//! Folders of children, below a folder of this process within the configured one.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::error::SandboxError;
use crate::system::ProcessFolder;

/// The folder of this process; removed when dropped.
pub struct ChildFolders {
    own: ProcessFolder,
}

impl ChildFolders {
    /// Makes this process's folder below `root` and removes those of dead processes.
    ///
    /// # Errors
    /// The folder can't be created, locked or read.
    pub fn open(root: &Path) -> Result<Self, SandboxError> {
        let fail = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |source: io::Error| SandboxError::Folder { what, path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(fail("creating the folder", root))?;
        // DuckDB compares canonical paths.
        let root = root.canonicalize().map_err(fail("finding the folder", root))?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let own = ProcessFolder::make(&root, &name).map_err(fail("making a folder in", &root))?;
        Ok(Self { own })
    }

    /// Creates a new folder for a child.
    ///
    /// # Errors
    /// It can't be created.
    pub fn child(&self) -> Result<PathBuf, SandboxError> {
        self.fresh("query")
    }

    /// Creates a new folder for files that are staged.
    ///
    /// # Errors
    /// It can't be created.
    pub fn staging(&self) -> Result<StagingFolder, SandboxError> {
        self.fresh("staged").map(StagingFolder)
    }

    fn fresh(&self, kind: &str) -> Result<PathBuf, SandboxError> {
        let path = self.own.path().join(format!("{kind}-{}", uuid::Uuid::new_v4().simple()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|source| SandboxError::Folder {
            what: "creating the folder",
            path: path.display().to_string(),
            source,
        })?;
        Ok(path)
    }
}

/// A folder in which files are staged for a child; removed with its files when dropped.
#[derive(Debug)]
pub struct StagingFolder(PathBuf);

impl StagingFolder {
    /// Takes ownership of an existing folder.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // The next start removes a leftover.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_removed_and_live_folders_stay() {
        let root = tempfile::tempdir().unwrap();
        let living = ChildFolders::open(root.path()).unwrap();
        let child = living.child().unwrap();
        let dead = root.path().join("dead");
        fs::create_dir_all(dead.join("child/t")).unwrap();
        fs::write(root.path().join("dead.lock"), "").unwrap();
        let second = ChildFolders::open(root.path()).unwrap();
        assert!(child.is_dir() && !dead.exists());
        drop(living);
        assert!(!child.exists() && second.own.path().is_dir());
    }
}
