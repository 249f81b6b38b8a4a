//! Checks the output folder of `lakemill run`, and removes what a dry run created.
//!
//! A run deletes files that its tables no longer need, so it must not run on a folder with other files.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::adapters::fs::OWN_FOLDER;

/// The folder of manifests and of the rejects of failed runs, in the output folder.
pub(super) const STATE_FOLDER: &str = "_lakemill";

/// Rejects an output that is or contains the input folder, is not a folder, or contains files that no run wrote.
///
/// # Errors
/// The problem, and what to use instead.
pub fn check(output: &Path, input: Option<&Path>) -> Result<(), String> {
    let shown = output.display();
    let found = match output.canonicalize() {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("--output `{shown}`: {error}")),
    };
    if !found.is_dir() {
        return Err(format!("--output `{shown}` is not a folder"));
    }
    if let Some(input) = input.filter(|input| *input == found) {
        return Err(format!("`{}` is both --input and --output: expected two folders", input.display()));
    }
    if let Some(input) = input.filter(|input| input.starts_with(&found)) {
        return Err(overlap_message(&input.display(), &shown));
    }
    if found.join(STATE_FOLDER).is_dir() || found.join(OWN_FOLDER).is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(&found).map_err(|e| format!("--output `{shown}`: {e}"))?;
    let foreign = entries.flatten().map(|entry| entry.file_name()).filter(|name| !is_hidden(name)).min();
    match foreign {
        Some(name) => Err(has_foreign(&shown, &name.to_string_lossy(), "an empty folder, a new one, or")),
        None => Ok(()),
    }
}

pub(super) fn overlap_message(input: &dyn Display, output: &dyn Display) -> String {
    format!(
        "--input `{input}` is inside --output `{output}`, whose folders are tables: name an output beside the input or \
         in it"
    )
}

pub(super) fn has_foreign(output: &dyn Display, name: &str, instead: &str) -> String {
    format!("--output `{output}` contains `{name}`, which no run created: name {instead} the output of an earlier run")
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Removes, when dropped, the folders that a dry run created for its lock and scratch.
pub struct DryRunCleanup {
    /// The folder and its missing parents, innermost first.
    missing: Vec<PathBuf>,
}

impl DryRunCleanup {
    pub fn new(output: &Path) -> Self {
        let missing = output.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        Self { missing: missing.map(Path::to_owned).collect() }
    }
}

impl Drop for DryRunCleanup {
    fn drop(&mut self) {
        let Some(output) = self.missing.first() else { return };
        let state = output.join(STATE_FOLDER);
        // The store's own folders hold locks. A folder with anything else is not removed.
        for own in [output.join(OWN_FOLDER), state.join(OWN_FOLDER)] {
            let _ = std::fs::remove_dir_all(own);
        }
        for folder in std::iter::once(&state).chain(&self.missing) {
            let _ = std::fs::remove_dir(folder);
        }
    }
}
