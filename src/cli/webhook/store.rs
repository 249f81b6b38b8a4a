//! Reads the notification rules of the lake bucket, and explains the store's errors.

use std::io::ErrorKind;

use crate::adapters::s3::{NotificationConfiguration, S3Store};
use crate::ports::store::{Bucket, StoreError};

/// Advice if a store has no notifications.
pub(super) const RECONCILE_ADVICE: &str = "if the store has no notifications, set SVC_RECONCILE_SECONDS for the workers \
 instead (300, for example): they then compare\n\
 the lake at that interval";

/// The error, with advice if the store doesn't support the request.
pub(super) fn describe(error: &StoreError) -> String {
    match error {
        StoreError::Transient { source, .. }
            if matches!(source.kind(), ErrorKind::ConnectionRefused | ErrorKind::TimedOut) =>
        {
            error.to_string()
        }
        // Stores without notifications respond in any of these ways.
        StoreError::AccessDenied { .. }
        | StoreError::InvalidKey { .. }
        | StoreError::NotFound { .. }
        | StoreError::PreconditionFailed { .. }
        | StoreError::Transient { .. } => format!("{error}\n{RECONCILE_ADVICE}"),
        StoreError::BucketNotFound { .. } | StoreError::LeaseLost(_) | StoreError::DiskFull { .. } => error.to_string(),
    }
}

pub(super) fn read(store: &S3Store) -> Result<NotificationConfiguration, String> {
    store.notifications(Bucket::Lake).map_err(|error| describe(&error))
}

/// Whether the store rejects the request or the rule, so that another kind may be tried.
pub(super) fn is_rejection(error: &StoreError) -> bool {
    match error {
        StoreError::AccessDenied { .. } | StoreError::InvalidKey { .. } | StoreError::NotFound { .. } => true,
        StoreError::BucketNotFound { .. }
        | StoreError::PreconditionFailed { .. }
        | StoreError::LeaseLost(_)
        | StoreError::DiskFull { .. }
        | StoreError::Transient { .. } => false,
    }
}
