//! The audit log: a line of JSON for each request that changes something, whether it succeeded or not.
//!
//! Invariants: a line is appended by one write, so that several processes can share the file; it is opened anew for each
//! line, so that it can be rotated. A failure to write fails no request: it is logged when it begins.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::http::{CompletedRequest, Method};
use crate::runtime::{Clock, rfc3339};

/// Readable by the owner and its group.
const MODE: u32 = 0o640;

/// A file that audited requests are appended to.
pub struct AuditFile {
    path: PathBuf,
    failing: AtomicBool,
}

/// A line of the log.
#[derive(Serialize)]
struct AuditedRequest<'a> {
    /// RFC 3339, in UTC, when the response ended.
    at: String,
    operation: &'static str,
    method: &'static str,
    /// As sent, without the query.
    path: &'a str,
    /// The query's parameters, decoded; of several with one name the last.
    query: BTreeMap<&'a str, &'a str>,
    status: u16,
    client: IpAddr,
    /// Names the session without its token; null for logins.
    session: Option<String>,
    request_id: &'a str,
}

impl AuditFile {
    /// Creates the file if it doesn't exist.
    ///
    /// # Errors
    /// It can't be appended to.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = Self { path, failing: AtomicBool::new(false) };
        file.append(b"").map(|()| file)
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).create(true).mode(MODE).open(&self.path)?.write_all(line)
    }
}

/// The log of a service.
pub(super) struct AuditLog {
    pub(super) file: AuditFile,
    /// Method, pattern and id of each audited operation.
    pub(super) operations: Vec<(Method, &'static str, &'static str)>,
}

impl AuditLog {
    /// Adds a request if it is of an audited operation. `session`: see [`AuditedRequest::session`].
    pub(super) fn add(
        &self,
        request: &CompletedRequest<'_>,
        session: impl FnOnce() -> Option<String>,
        clock: &dyn Clock,
    ) {
        let is_of_route =
            |(method, pattern, _): &&(Method, &str, &str)| (*method, *pattern) == (request.method, request.pattern);
        let Some((_, _, operation)) = self.operations.iter().find(is_of_route) else { return };
        let line = AuditedRequest {
            at: rfc3339(clock.now()),
            operation,
            method: request.method.as_str(),
            path: request.head.raw_path(),
            query: request.head.query().iter().collect(),
            status: request.status,
            client: request.head.client(),
            session: session(),
            request_id: request.head.id().as_str(),
        };
        let written = serde_json::to_vec(&line).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.file.append(&line)
        });
        let was_failing = self.file.failing.swap(written.is_err(), Ordering::Relaxed);
        match written {
            Err(error) if !was_failing => {
                tracing::error!(path = %self.file.path.display(), %error, "audit log can't be written; its lines are lost");
            }
            Ok(()) if was_failing => tracing::info!("audit log can be written again"),
            Ok(()) | Err(_) => {}
        }
    }
}
