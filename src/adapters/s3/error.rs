//! Maps S3's error codes to the errors of the port.

use std::io;

use crate::ports::store::{Bucket, LeaseLost, StoreError};

use super::failure::{RequestError, StoreRejection};

/// The target of an operation, for its errors.
#[derive(Clone, Copy)]
pub(super) struct OperationContext<'a> {
    pub(super) bucket: Bucket,
    /// The bucket's name on the store.
    pub(super) name: &'a str,
    pub(super) key: &'a str,
    pub(super) operation: &'static str,
}

impl OperationContext<'_> {
    pub(super) fn not_found(&self) -> StoreError {
        StoreError::NotFound { bucket: self.bucket, key: self.key.to_owned() }
    }

    pub(super) fn bucket_not_found(&self) -> StoreError {
        StoreError::BucketNotFound { bucket: self.bucket, name: self.name.to_owned() }
    }

    pub(super) fn precondition_failed(&self) -> StoreError {
        StoreError::PreconditionFailed { bucket: self.bucket, key: self.key.to_owned() }
    }

    pub(super) fn transient(&self, source: io::Error) -> StoreError {
        StoreError::Transient { bucket: self.bucket, key: self.key.to_owned(), operation: self.operation, source }
    }

    /// A response without a required part.
    pub(super) fn missing(&self, what: &str) -> StoreError {
        let text = format!("invalid response from the store: expected {what}, found none");
        self.transient(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    pub(super) fn invalid(&self, reason: &str) -> StoreError {
        invalid_key(self.bucket, self.key, reason)
    }

    fn denied(&self, reason: String) -> StoreError {
        StoreError::AccessDenied { bucket: self.bucket, key: self.key.to_owned(), reason }
    }

    pub(super) fn error(&self, failure: RequestError) -> StoreError {
        match failure {
            RequestError::LeaseLost => LeaseLost.into(),
            RequestError::NoResponse { source, .. } => self.transient(source),
            RequestError::Rejected { expired: true, .. } => LeaseLost.into(),
            RequestError::Rejected { rejection, .. } => self.refused(&rejection),
        }
    }

    fn refused(&self, rejection: &StoreRejection) -> StoreError {
        match (rejection.status, rejection.code.as_str()) {
            (_, "NoSuchBucket") => self.bucket_not_found(),
            (_, "NoSuchKey") | (404, "" | "NotFound" | "ObjectNotFound") => self.not_found(),
            (412, _) | (_, "PreconditionFailed") | (409, "ConditionalRequestConflict") => self.precondition_failed(),
            (507, _) | (_, "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage") => {
                StoreError::DiskFull { bucket: self.bucket, key: self.key.to_owned() }
            }
            (_, "KeyTooLongError" | "InvalidObjectName" | "XMinioInvalidObjectName") => {
                self.invalid(&rejection.to_string())
            }
            // The body was corrupted in transit, the upload was aborted, or another write is in progress.
            (_, "BadDigest" | "IncompleteBody" | "NoSuchUpload" | "OperationAborted") => {
                self.transient(io::Error::other(rejection.to_string()))
            }
            _ if rejection.is_overload() || rejection.status >= 500 => {
                self.transient(io::Error::other(rejection.to_string()))
            }
            (_, code) => self.denied(format!("{rejection}{}", hint(rejection.status, code))),
        }
    }
}

pub(super) fn invalid_key(bucket: Bucket, key: &str, reason: &str) -> StoreError {
    StoreError::InvalidKey { bucket, key: key.chars().take(1_100).collect(), reason: reason.to_owned() }
}

/// Advice.
fn hint(status: u16, code: &str) -> &'static str {
    match (status, code) {
        (_, "RequestTimeTooSkewed") => "; this machine's clock and the store's differ: synchronize them by NTP",
        (_, "InvalidAccessKeyId") => "; check OBJ_ACCESS_KEY_ID",
        (_, "SignatureDoesNotMatch") => "; check OBJ_SECRET_ACCESS_KEY",
        (_, "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError") => "; check OBJ_REGION",
        (300..400, _) => "; the store redirects: check OBJ_ENDPOINT_URL and OBJ_REGION",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, code: &str) -> StoreError {
        let context = OperationContext { bucket: Bucket::Lake, name: "svc-lake", key: "k", operation: "reading" };
        let rejection = StoreRejection {
            status,
            code: code.to_owned(),
            message: "m".to_owned(),
            request_id: "7".to_owned(),
            region: None,
        };
        context.error(RequestError::rejected(rejection))
    }

    #[test]
    fn codes_map_to_errors() {
        assert_eq!(of(404, "NoSuchBucket").to_string(), "the lake bucket `svc-lake` does not exist");
        assert!(matches!(of(404, "NoSuchKey"), StoreError::NotFound { .. }));
        assert!(matches!(of(404, ""), StoreError::NotFound { .. }));
        assert!(matches!(of(412, "PreconditionFailed"), StoreError::PreconditionFailed { .. }));
        assert!(matches!(of(409, "ConditionalRequestConflict"), StoreError::PreconditionFailed { .. }));
        for (status, code) in [
            (503, "SlowDown"),
            (429, ""),
            (500, "InternalError"),
            (409, "OperationAborted"),
            (404, "NoSuchUpload"),
            (501, ""),
        ] {
            assert!(matches!(of(status, code), StoreError::Transient { .. }), "{status} {code}");
        }
        assert!(matches!(of(507, ""), StoreError::DiskFull { .. }));
        assert!(matches!(of(400, "KeyTooLongError"), StoreError::InvalidKey { .. }));
        for (status, code) in [(403, "AccessDenied"), (401, ""), (400, "InvalidArgument"), (301, "PermanentRedirect")] {
            assert!(matches!(of(status, code), StoreError::AccessDenied { .. }), "{status} {code}");
        }
    }

    #[test]
    fn rejection_shows_code_message_request_and_advice() {
        assert_eq!(
            of(403, "SignatureDoesNotMatch").to_string(),
            "lake bucket: access to `k` is denied: status 403 `SignatureDoesNotMatch`: m (request 7); \
             check OBJ_SECRET_ACCESS_KEY"
        );
        assert!(of(403, "RequestTimeTooSkewed").to_string().contains("NTP"));
        assert_eq!(of(503, "SlowDown").to_string(), "lake bucket: reading `k`: status 503 `SlowDown`: m (request 7)");
    }
}
