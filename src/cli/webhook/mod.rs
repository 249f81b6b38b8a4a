//! `lakemill webhook`: the lake bucket's notification rules, which make the store tell the worker of new files.

mod install;
mod remove;
mod rules;

use std::io::{ErrorKind, Write};
use std::sync::Arc;

use super::args::WebhookCommand;
use super::services::Services;
use super::{Failure, environment};
use crate::adapters::s3::{NotificationConfiguration, S3Options, S3Store};
use crate::config::{Endpoint, ObjectStoreConfig};
use crate::ports::store::{Bucket, StoreError};

pub use rules::reports_new_files;

const NOT_NEEDED: &str =
    "the object store is a folder of this machine, which the worker watches by itself: no webhook is needed";
/// What to do where a store can't tell of new files.
const INSTEAD: &str = "\
if the store has no notifications, set SVC_RECONCILE_SECONDS for the workers instead (300, say): they then look through
the lake that often";

/// # Errors
/// What is wrong with the environment, or what the store says.
pub fn run(command: &WebhookCommand) -> Result<bool, Failure> {
    let objects = environment::load(None, ObjectStoreConfig::from_env)?;
    let bucket = &objects.buckets.lake;
    let mut out = std::io::stdout().lock();
    let said = match open(&objects)? {
        None => writeln!(out, "{NOT_NEEDED}").map(|()| true),
        Some(store) => match command {
            WebhookCommand::Install { arn, compressed } => {
                let installed = install::install(&store, arn, *compressed)?;
                installed.tell(bucket, arn, *compressed, &mut out).map(|()| true)
            }
            WebhookCommand::Show => {
                let found = read(&store)?;
                rules::show(bucket, &found, &mut out).map(|()| true)
            }
            WebhookCommand::Remove { yes } => return remove::remove(&store, bucket, *yes, &mut out),
        },
    };
    Ok(said.map_err(|error| error.to_string())?)
}

/// `None` if the objects lie in a folder.
fn open(objects: &ObjectStoreConfig) -> Result<Option<Arc<S3Store>>, String> {
    match (&objects.endpoint, S3Options::from_config(objects, Services::clock())) {
        (Endpoint::S3(_), Some(options)) => {
            S3Store::open(options).map(|store| Some(Arc::new(store))).map_err(|error| error.to_string())
        }
        (Endpoint::Folder(_), _) | (Endpoint::S3(_), None) => Ok(None),
    }
}

/// With what to do if the store can't do what was asked of it.
fn told(error: &StoreError) -> String {
    match error {
        StoreError::Transient { source, .. }
            if matches!(source.kind(), ErrorKind::ConnectionRefused | ErrorKind::TimedOut) =>
        {
            error.to_string()
        }
        // Stores say in any of these ways that they don't know notifications.
        StoreError::AccessDenied { .. }
        | StoreError::InvalidKey { .. }
        | StoreError::NotFound { .. }
        | StoreError::PreconditionFailed { .. }
        | StoreError::Transient { .. } => format!("{error}\n{INSTEAD}"),
        StoreError::BucketNotFound { .. } | StoreError::LeaseLost(_) | StoreError::DiskFull { .. } => error.to_string(),
    }
}

fn read(store: &S3Store) -> Result<NotificationConfiguration, String> {
    store.notifications(Bucket::Lake).map_err(|error| told(&error))
}

/// Whether the store has the request or the rule not, so that another way may be tried.
fn is_refusal(error: &StoreError) -> bool {
    match error {
        StoreError::AccessDenied { .. } | StoreError::InvalidKey { .. } | StoreError::NotFound { .. } => true,
        StoreError::BucketNotFound { .. }
        | StoreError::PreconditionFailed { .. }
        | StoreError::LeaseLost(_)
        | StoreError::DiskFull { .. }
        | StoreError::Transient { .. } => false,
    }
}
