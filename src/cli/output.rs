//! Which folder may be an output, and a dry run that leaves none behind.
//!
//! A run deletes what its tables no longer need, so that it must not be let loose on a folder of somebody's own files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::local::STATE_FOLDER;
use crate::adapters::fs::OWN_FOLDER;

/// Refuses an output that is or holds the input, is no folder, or holds what no run has put there.
///
/// # Errors
/// What is wrong with it, and what to name instead.
pub fn check(output: &Path, input: &Path) -> Result<(), String> {
    let shown = output.display();
    let found = match output.canonicalize() {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("--output `{shown}`: {error}")),
    };
    if !found.is_dir() {
        return Err(format!("--output `{shown}` is not a folder"));
    }
    if input == found {
        return Err(format!("`{}` is both --input and --output: expected two folders", input.display()));
    }
    if input.starts_with(&found) {
        return Err(format!(
            "--input `{}` lies in --output `{shown}`, whose folders are tables: name an output beside the input or in it",
            input.display()
        ));
    }
    if found.join(STATE_FOLDER).is_dir() || found.join(OWN_FOLDER).is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(&found).map_err(|e| format!("--output `{shown}`: {e}"))?;
    let foreign = entries.flatten().map(|entry| entry.file_name()).filter(|name| !is_hidden(name)).min();
    match foreign {
        Some(name) => Err(format!(
            "--output `{shown}` holds `{}`, which no run has made: name an empty folder, a new one, or that of an \
             earlier run",
            name.to_string_lossy()
        )),
        None => Ok(()),
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// An output folder that a dry run needs for its lock and scratch; what of it wasn't there goes again when dropped.
pub struct Unmade {
    /// The folder and those above it that are missing, from the inside out.
    missing: Vec<PathBuf>,
}

impl Unmade {
    pub fn of(output: &Path) -> Self {
        let missing = output.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        Self { missing: missing.map(Path::to_owned).collect() }
    }
}

impl Drop for Unmade {
    fn drop(&mut self) {
        let Some(output) = self.missing.first() else { return };
        let state = output.join(STATE_FOLDER);
        // What the store keeps for itself are locks. A folder in which anything else lies isn't removed.
        for own in [output.join(OWN_FOLDER), state.join(OWN_FOLDER)] {
            let _ = std::fs::remove_dir_all(own);
        }
        for folder in std::iter::once(&state).chain(&self.missing) {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
