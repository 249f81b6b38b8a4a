//! Errors of the API.
//!
//! Invariant: a code has one status, from one table; the text of a 5xx is the code's general one. The internal cause is
//! logged under the request's id and never sent.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::request_id::RequestId;
use super::response::Response;

/// The codes, their statuses and general texts; a 5xx always has its general text.
macro_rules! codes {
    ($($variant:ident $code:literal $status:literal $general:literal)*) => {
        /// The machine-readable name of an error; stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($variant),* }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the response.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            /// The general text.
            pub fn general_message(self) -> &'static str {
                match self { $(Self::$variant => $general),* }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400 "the request is malformed"
    InvalidSlug "invalid_slug" 400 "the slug is malformed"
    InvalidKey "invalid_key" 400 "the key is malformed"
    InvalidSql "invalid_sql" 400 "the SQL is not allowed"
    InvalidEvent "invalid_event" 400 "the body is not an S3 event notification"
    Unauthorized "unauthorized" 401 "credentials are missing or wrong"
    ForbiddenOrigin "forbidden_origin" 403 "the request comes from another site"
    NotFound "not_found" 404 "the path does not exist"
    PipelineNotFound "pipeline_not_found" 404 "there is no such pipeline"
    PipelineConfigNotFound "pipeline_config_not_found" 404 "the pipeline has no `pipeline.json`"
    DashboardNotFound "dashboard_not_found" 404 "there is no such dashboard"
    TableNotFound "table_not_found" 404 "there is no such table"
    VersionNotFound "version_not_found" 404 "there is no such version"
    QueryNotFound "query_not_found" 404 "there is no such query"
    JobNotFound "job_not_found" 404 "there is no such job"
    ObjectNotFound "object_not_found" 404 "there is no such object"
    MethodNotAllowed "method_not_allowed" 405 "the path doesn't support this method"
    AlreadyExists "already_exists" 409 "it already exists"
    NameTaken "name_taken" 409 "the name is already used"
    PipelineBusy "pipeline_busy" 409 "a run of the pipeline is in progress"
    NoTargets "no_targets" 409 "no running worker has targets for notifications"
    PreconditionFailed "precondition_failed" 412 "the object was changed in the meantime"
    PayloadTooLarge "payload_too_large" 413 "the body is too large"
    UnsupportedMediaType "unsupported_media_type" 415 "the path doesn't support this content type"
    MisdirectedRequest "misdirected_request" 421 "the host name is not one of this service"
    InvalidConfig "invalid_config" 422 "the config has problems"
    InvalidDashboard "invalid_dashboard" 422 "the dashboard has problems"
    InvalidArchive "invalid_archive" 422 "the archive has problems"
    QueryTimeout "query_timeout" 422 "the query took too long"
    QueryOutOfMemory "query_out_of_memory" 422 "the query exceeded its memory limit"
    QueryTooLarge "query_too_large" 422 "the query reads more data than the cache can hold"
    QueryCancelled "query_cancelled" 422 "the query was cancelled"
    TableDamaged "table_damaged" 422 "the table's files don't match its manifest; start a clean run"
    TooManyRequests "too_many_requests" 429 "too many requests; try again later"
    Internal "internal" 500 "internal error; see the service's log for this request id"
    S3Error "s3_error" 502 "the object store failed; see the service's log for this request id"
    BucketNotFound "bucket_not_found" 502 "a bucket does not exist; check the S3_BUCKET_* settings"
    WorkerUnavailable "worker_unavailable" 502 "the worker can't be reached"
    KvUnavailable "kv_unavailable" 503 "the key-value store can't be reached; try again later"
    Overloaded "overloaded" 503 "the service is busy; try again later"
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that ends a request: `{ "error", "message", "problems"?, "request_id" }`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {}", .0.code, .0.cause.as_deref().unwrap_or(&.0.message))]
pub struct ApiError(Box<Parts>);

/// Boxed, so that results of handlers stay small.
#[derive(Debug, Clone)]
struct Parts {
    code: ErrorCode,
    message: String,
    problems: Option<Value>,
    retry_after: Option<Duration>,
    headers: Vec<(&'static str, String)>,
    cause: Option<String>,
}

impl ApiError {
    /// An error with a text for the client. For a 5xx the text is logged instead, and the client gets the general one.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        let (message, cause) = match code.status() {
            500.. => (code.general_message().to_owned(), Some(message)),
            _ => (message, None),
        };
        Self(Box::new(Parts { code, message, problems: None, retry_after: None, headers: Vec::new(), cause }))
    }

    /// An error with the code's general text.
    pub fn of(code: ErrorCode) -> Self {
        Self::new(code, code.general_message())
    }

    /// An error with the code's general text, and a cause that is logged.
    pub fn caused(code: ErrorCode, cause: impl fmt::Display) -> Self {
        let mut error = Self::of(code);
        error.0.cause = Some(cause.to_string());
        error
    }

    /// A bug, or a failure without its own code: logged, and answered with 500 `internal`.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::caused(ErrorCode::Internal, cause)
    }

    /// Adds problems, as a JSON array.
    #[must_use]
    pub fn with_problems(mut self, problems: impl Serialize) -> Self {
        self.0.problems = serde_json::to_value(problems).ok();
        self
    }

    /// The problems, if there are any.
    pub fn problems(&self) -> Option<&Value> {
        self.0.problems.as_ref()
    }

    /// Adds further problems.
    #[must_use]
    pub fn and_problems(mut self, more: Vec<impl Serialize>) -> Self {
        let more = more.into_iter().filter_map(|problem| serde_json::to_value(problem).ok());
        match &mut self.0.problems {
            Some(Value::Array(problems)) => problems.extend(more),
            problems => *problems = Some(more.collect()),
        }
        self
    }

    /// Sends `Retry-After`, in whole seconds, rounded up.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    pub fn status(&self) -> u16 {
        self.0.code.status()
    }

    /// The text for the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The cause that is logged.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    pub(super) fn into_response(self, id: &RequestId) -> Response {
        let mut body = json!({ "error": self.0.code.as_str(), "message": self.0.message });
        if let Some(problems) = self.0.problems {
            body["problems"] = problems;
        }
        body["request_id"] = Value::from(id.as_str());
        let mut response = Response::json(self.0.code.status(), &body);
        if let Some(wait) = self.0.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response = response.with_header("Retry-After", seconds.max(1).to_string());
        }
        self.0.headers.into_iter().fold(response, |response, (name, value)| response.with_header(name, value))
    }
}
