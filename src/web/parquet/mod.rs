//! Parquet files that this process did not write, read by child processes.
//!
//! Invariant: no byte of such a file is parsed in this process but the eight at its end. A child that dies of a file, or
//! refuses it, costs that file alone: it counts as unreadable for [`REMEMBERED`], so that it kills no further child
//! meanwhile. Answers of children are checked as a stranger's.

pub(in crate::web) mod columns;
pub(in crate::web) mod fold;
pub(in crate::web) mod footer;
pub(in crate::web) mod rejects;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::clipped;
use super::sql::failure::from_sandbox;
use crate::http::ApiError;
use crate::ports::store::ETag;
use crate::sql::sandbox::child::OpFn;
use crate::sql::sandbox::{Child, Sandbox, SandboxError, SqlErrorKind};

/// What children do with such files; the program registers it.
pub const OPERATIONS: &[(&str, OpFn)] = &[
    (footer::OPERATION, |payload| answer(payload, footer::read)),
    (columns::OPERATION, |payload| answer(payload, columns::read)),
    (rejects::OPERATION, |payload| answer(payload, rejects::read)),
];

/// Longest time of one operation.
const OPERATION_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a child.
const CHILD_WAIT: Duration = Duration::from_secs(10);
/// How long an unreadable file counts as such without another try.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Unreadable files that are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// The file's name in a child's folder.
const FILE: &str = "file.parquet";
const KILLED: &str = "its reader crashed, or needed more memory or time than it may have";

/// An operation in the child: typed payload, typed answer.
fn answer<'a, Q: Deserialize<'a>, A: Serialize>(
    payload: &'a Value,
    read: fn(Q) -> Result<A, String>,
) -> Result<Value, String> {
    let request = Q::deserialize(payload).map_err(|error| error.to_string())?;
    serde_json::to_value(read(request)?).map_err(|error| error.to_string())
}

/// Why a file was not read.
#[derive(Debug)]
pub(in crate::web) enum ReadError {
    /// It is the file's fault: what is wrong with it.
    Unreadable(String),
    Failed(ApiError),
}

/// Asks a child that has the file in its folder.
///
/// # Errors
/// [`ReadError::Unreadable`] if the child refuses the file, dies, or exceeds its time.
pub(in crate::web) fn ask<A: DeserializeOwned>(
    child: &mut Child,
    operation: &str,
    request: &impl Serialize,
) -> Result<A, ReadError> {
    let payload = serde_json::to_value(request).map_err(|error| ReadError::Failed(ApiError::internal(error)))?;
    let answer = child.call(operation, &payload, Instant::now() + OPERATION_TIME_MAX).map_err(|error| match error {
        SandboxError::Failed { message } => ReadError::Unreadable(clipped(&message)),
        SandboxError::Protocol { .. } => ReadError::Unreadable(KILLED.to_owned()),
        SandboxError::Sql(error) if error.kind != SqlErrorKind::Cancelled => ReadError::Unreadable(KILLED.to_owned()),
        error @ (SandboxError::Sql(_)
        | SandboxError::Busy { .. }
        | SandboxError::Start { .. }
        | SandboxError::Folder { .. }) => ReadError::Failed(from_sandbox(error)),
    })?;
    serde_json::from_value(answer).map_err(|_| ReadError::Unreadable(KILLED.to_owned()))
}

/// Reads one staged file, by as many children as die of it.
pub(in crate::web) struct Reader<'a> {
    sandbox: &'a Sandbox,
    /// On the file system of the children's folders.
    file: &'a Path,
    child: Option<Child>,
}

impl<'a> Reader<'a> {
    pub(in crate::web) fn new(sandbox: &'a Sandbox, file: &'a Path) -> Self {
        Self { sandbox, file, child: None }
    }

    /// # Errors
    /// As for [`ask`]; the next call takes another child then.
    pub(in crate::web) fn ask<A: DeserializeOwned>(
        &mut self,
        operation: &str,
        request: &impl Serialize,
    ) -> Result<A, ReadError> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.child().map_err(ReadError::Failed)?,
        };
        let answer = ask(&mut child, operation, request)?;
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

/// Files that could not be read, by key and tag, with the reason.
#[derive(Default)]
pub(in crate::web) struct Unreadable(Mutex<HashMap<(String, String), (Instant, String)>>);

impl Unreadable {
    /// Why the object could not be read a while ago.
    pub(in crate::web) fn reason(&self, key: &str, etag: &ETag) -> Option<String> {
        let known = self.0.lock();
        let (since, reason) = known.get(&(key.to_owned(), etag.0.clone()))?;
        (since.elapsed() < REMEMBERED).then(|| reason.clone())
    }

    /// An object without a tag is not remembered: it may change unseen.
    pub(in crate::web) fn add(&self, key: &str, etag: &ETag, reason: &str) {
        tracing::warn!(key, reason, "a Parquet file can't be read");
        if etag.0.is_empty() {
            return;
        }
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert((key.to_owned(), etag.0.clone()), (Instant::now(), reason.to_owned()));
    }
}
