//! The service, and what its handlers share.

use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;

use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::problem::{Problem, ProblemKind};
use crate::http::{ApiError, ErrorCode};
use crate::ports::jobs::JobRegistry;
use crate::runtime::Clock;
use crate::web::dashboards::Dashboards;
use crate::web::locks::Locks;
use crate::web::saved_queries::SavedQueries;
use crate::web::sql::Sql;
use crate::web::stores::Objects;
use crate::web::worker_client::WorkerClient;

/// Timeout of a worker's validation: a multiple of its processor-time limit, for busy machines.
pub(super) const VALIDATE_TIMEOUT: Duration = Duration::from_secs(15);

/// Largest config, in bytes.
pub(super) const BYTES_MAX: u64 = CONFIG_BYTES_MAX as u64;

/// The service.
pub struct Configs {
    pub store: Objects,
    pub clock: Arc<dyn Clock>,
    pub kv: Arc<dyn JobRegistry>,
    pub worker: WorkerClient,
    pub locks: Arc<Locks>,
    pub sql: Arc<Sql>,
    pub dashboards: Arc<Dashboards>,
    pub saved_queries: Arc<SavedQueries>,
}

/// Checks that bytes are JSON within the size limit.
///
/// # Errors
/// The problem.
pub(super) fn json_text(bytes: &[u8]) -> Result<&str, Problem> {
    let problem = |kind, message: String| Problem::new(kind, "", message);
    if bytes.len() > CONFIG_BYTES_MAX {
        return Err(problem(ProblemKind::Limit, format!("expected at most {CONFIG_BYTES_MAX} bytes, found more")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        problem(ProblemKind::Syntax, format!("expected UTF-8, found an invalid byte at {}", error.valid_up_to()))
    })?;
    // Reads without recursion, so that nesting can't overflow the stack.
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| problem(ProblemKind::Syntax, format!("expected JSON: {error}")))?;
    Ok(text)
}

/// The text of a request's body, if it is JSON within the size limit.
///
/// # Errors
/// `invalid_request`.
pub fn text_of_body(body: &[u8]) -> Result<&str, ApiError> {
    json_text(body).map_err(|problem| {
        ApiError::new(ErrorCode::InvalidRequest, format!("the body is not a config: {}", problem.message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_accepted_as_config() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for good in ["{}", "null", " [1e999, \"\\ud800\", {\"a\":1,\"a\":2}]\n", deep.as_str()] {
            assert_eq!(json_text(good.as_bytes()), Ok(good));
        }
        let long = format!("\"{}\"", "x".repeat(CONFIG_BYTES_MAX));
        for (bad, kind) in [
            (&b""[..], ProblemKind::Syntax),
            (b"{", ProblemKind::Syntax),
            (b"{} {}", ProblemKind::Syntax),
            (b"// c\n{}", ProblemKind::Syntax),
            (b"\xef\xbb\xbf{}", ProblemKind::Syntax),
            (b"\"\xff\"", ProblemKind::Syntax),
            (b"{\0}", ProblemKind::Syntax),
            (long.as_bytes(), ProblemKind::Limit),
        ] {
            assert_eq!(json_text(bad).unwrap_err().kind, kind, "{:?}", &bad[..bad.len().min(20)]);
        }
    }
}
