//! Reads Parquet files that this process didn't write, in child processes.
//!
//! Invariant: this process parses no more of such a file than its last eight bytes. A file that crashes a child, or that a
//! child rejects, counts as unreadable for [`UNREADABLE_TTL`], so that it crashes no other child meanwhile. Answers of
//! children are validated as untrusted input.

mod call;
pub mod fold;
pub mod footer;
pub mod rejects;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sql::failure::from_sandbox;
use crate::http::ApiError;
use crate::sql::sandbox::{Child, OpFn, Sandbox};

pub use call::ParquetReadError;
use call::{FILE, call};

/// The operations of children; the program registers them.
pub const OPERATIONS: &[(&str, OpFn)] = &[
    (footer::OPERATION, |payload| answer(payload, footer::read)),
    (rejects::OPERATION, |payload| answer(payload, rejects::read)),
];

/// Longest wait for a child.
const CHILD_WAIT: Duration = Duration::from_secs(10);
/// Time to live of an entry for an unreadable file.
const UNREADABLE_TTL: Duration = Duration::from_secs(600);
/// Maximum number of unreadable files remembered.
const UNREADABLE_MAX: usize = 10_000;

/// Runs an operation in the child, with typed payload and answer.
fn answer<'a, Q: Deserialize<'a>, A: Serialize>(
    payload: &'a Value,
    read: fn(Q) -> Result<A, String>,
) -> Result<Value, String> {
    let request = Q::deserialize(payload).map_err(|error| error.to_string())?;
    serde_json::to_value(read(request)?).map_err(|error| error.to_string())
}

/// Reads one staged file; borrows a new child after a crash.
pub struct Reader<'a> {
    sandbox: &'a Sandbox,
    /// On the file system of the children's folders.
    file: &'a Path,
    child: Option<Child>,
}

impl<'a> Reader<'a> {
    pub fn new(sandbox: &'a Sandbox, file: &'a Path) -> Self {
        Self { sandbox, file, child: None }
    }

    /// # Errors
    /// Errors of [`call`]; the next call uses a new child.
    pub fn call<A: DeserializeOwned>(
        &mut self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<A, ParquetReadError> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.child().map_err(ParquetReadError::Failed)?,
        };
        let answer = call(&mut child, operation, request)?;
        self.child = Some(child);
        Ok(answer)
    }

    fn child(&self) -> Result<Child, ApiError> {
        let child = self.sandbox.child(CHILD_WAIT).map_err(from_sandbox)?;
        let folder = child.folder().ok_or_else(|| ApiError::internal("the child has no folder"))?;
        let path = folder.join(FILE);
        std::fs::hard_link(self.file, &path)
            .map_err(|error| ApiError::internal(format!("linking `{}`: {error}", path.display())))?;
        Ok(child)
    }
}

/// Unreadable files by key and version, with the reason.
#[derive(Default)]
pub struct UnreadableFiles(Mutex<HashMap<(String, String), (Instant, String)>>);

impl UnreadableFiles {
    /// Why the object was recently unreadable.
    pub fn reason(&self, key: &str, version: &str) -> Option<String> {
        let known = self.0.lock();
        let (since, reason) = known.get(&(key.to_owned(), version.to_owned()))?;
        (since.elapsed() < UNREADABLE_TTL).then(|| reason.clone())
    }

    /// Records an unreadable object. `version`: its tag, or the hash of its content.
    pub fn add(&self, key: &str, version: &str, reason: &str) {
        tracing::warn!(key, reason, "Parquet file is unreadable");
        let mut known = self.0.lock();
        if known.len() >= UNREADABLE_MAX {
            known.retain(|_, (since, _)| since.elapsed() < UNREADABLE_TTL);
        }
        if known.len() >= UNREADABLE_MAX {
            known.clear();
        }
        known.insert((key.to_owned(), version.to_owned()), (Instant::now(), reason.to_owned()));
    }
}
