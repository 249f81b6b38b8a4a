//! Checks the object store: buckets, reading and writing, and features.

use std::io::Read;
use std::time::{Duration, Instant};

use super::check::CheckResult;
use super::context::{DoctorContext, Missing};
use crate::cli::services::Backend;
use crate::config::Buckets;
use crate::domain::layout::probe_key;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreError, StoreResult, WriteOptions};

/// Time limit of a probe's write.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
const NOT_SET: &str = "the environment doesn't set the object store";

/// The store, or the finding if it can't be opened.
fn store(context: &DoctorContext) -> Result<&dyn ObjectStore, Vec<CheckResult>> {
    context.store().map_err(|missing| vec![store_missing(missing)])
}

pub(super) fn store_missing(missing: Missing) -> CheckResult {
    match missing {
        Missing::NotConfigured => CheckResult::skipped(NOT_SET),
        Missing::NotCreated(what) => CheckResult::skipped(format!("`{what}` does not exist yet")),
        Missing::CannotBeOpened(why) => CheckResult::problem(why, "correct OBJ_ENDPOINT_URL, or SVC_CA_FILE"),
    }
}

/// A bucket with its own name.
fn named(context: &DoctorContext, bucket: Bucket) -> String {
    let buckets: Option<&Buckets> = context.objects.as_ref().ok().map(|loaded| &loaded.config.buckets);
    let name = buckets.map_or("", |buckets| match bucket {
        Bucket::Pipelines => &buckets.pipelines,
        Bucket::Lake => &buckets.lake,
        Bucket::Warehouse => &buckets.warehouse,
    });
    format!("the {bucket} bucket `{name}`")
}

fn variable(bucket: Bucket) -> &'static str {
    match bucket {
        Bucket::Pipelines => "S3_BUCKET_PIPELINES",
        Bucket::Lake => "S3_BUCKET_LAKE",
        Bucket::Warehouse => "S3_BUCKET_WAREHOUSE",
    }
}

/// Whether the bucket can be listed.
pub(super) fn listed(store: &dyn ObjectStore, bucket: Bucket) -> StoreResult<()> {
    store.list(bucket, "", None, None, 1).map(drop)
}

pub(super) fn buckets(context: &DoctorContext) -> Vec<CheckResult> {
    let store = match store(context) {
        Ok(store) => store,
        Err(findings) => return findings,
    };
    let mut findings = Vec::new();
    for bucket in Bucket::ALL {
        match listed(store, bucket) {
            Ok(()) => findings.push(found(context, bucket)),
            // The other buckets would report the same, each after its timeout.
            Err(error @ StoreError::Transient { .. }) => return vec![store_failure(bucket, &error)],
            Err(error) => findings.push(store_failure(bucket, &error)),
        }
    }
    findings
}

/// A bucket that was listed.
fn found(context: &DoctorContext, bucket: Bucket) -> CheckResult {
    let redirected = match context.backend() {
        Ok(Backend::S3(store)) => store.redirected_region(bucket),
        Ok(Backend::Folder(_)) | Err(_) => None,
    };
    match redirected {
        Some(region) => CheckResult::warning(
            format!("{} is in region `{region}`: each process is redirected to it", named(context, bucket)),
            "set OBJ_REGION and OBJ_ENDPOINT_URL for that region",
        ),
        None => CheckResult::ok(format!("{} can be listed", named(context, bucket))),
    }
}

fn store_failure(bucket: Bucket, error: &StoreError) -> CheckResult {
    let advice = match error {
        StoreError::BucketNotFound { .. } => format!("create it, or correct {}", variable(bucket)),
        StoreError::AccessDenied { .. } => {
            "check OBJ_ACCESS_KEY_ID, OBJ_SECRET_ACCESS_KEY and OBJ_REGION, and that these credentials may list, \
             read, write and delete"
                .to_owned()
        }
        StoreError::Transient { source, .. } => unreachable_store(&source.to_string()).to_owned(),
        StoreError::DiskFull { .. } => "free some space".to_owned(),
        StoreError::NotFound { .. } | StoreError::PreconditionFailed { .. } | StoreError::InvalidKey { .. } => {
            "the store doesn't behave like S3; use another".to_owned()
        }
        StoreError::LeaseLost(_) => "correct this machine's clock".to_owned(),
    };
    CheckResult::problem(error.to_string(), advice)
}

/// Advice for a store that isn't reached; `why` is the connection's error.
fn unreachable_store(why: &str) -> &'static str {
    if why.contains("OBJ_SIGNATURE=query") {
        return "set OBJ_SIGNATURE=query";
    }
    let why = why.to_ascii_lowercase();
    if why.contains("no aws credentials") {
        return "correct what OBJ_CREDENTIALS=chain uses, as the finding says; see docs/aws.md";
    }
    if why.contains("(by the proxy ") {
        return "check that the proxy permits tunnels (CONNECT) to the store's host and port, and its user and password; \
                or name the store in NO_PROXY";
    }
    if why.contains("certificate") || why.contains("unknownissuer") {
        "the store's certificate is not trusted: set SVC_CA_FILE to the certificate of the authority that signed it"
    } else if why.contains("corrupt message") || why.contains("handshake") || why.contains("tls") {
        "the server at this address doesn't use TLS: correct the scheme (`http://`?) or port of OBJ_ENDPOINT_URL"
    } else {
        "check that the store at OBJ_ENDPOINT_URL is running and can be reached from here, and that scheme and port \
         are right"
    }
}

pub(super) fn round_trip(context: &DoctorContext) -> Vec<CheckResult> {
    let store = match store(context) {
        Ok(store) => store,
        Err(findings) => return findings,
    };
    let mut findings = Vec::new();
    for bucket in Bucket::ALL {
        if listed(store, bucket).is_err() {
            findings.push(CheckResult::skipped(format!("{} can't be listed", named(context, bucket))));
            continue;
        }
        findings.push(match put_get_delete(store, bucket) {
            Ok(true) => {
                CheckResult::ok(format!("an object was written to {}, read back and deleted", named(context, bucket)))
            }
            Ok(false) => {
                let message = format!("{} returned different data than was written", named(context, bucket));
                CheckResult::problem(message, "the store is faulty, or a proxy changes objects; use another")
            }
            Err(error @ StoreError::AccessDenied { .. }) => CheckResult::problem(
                error.to_string(),
                "check that the credentials may write, read and delete; if a policy denies signatures in the query \
                 (s3:authType), set OBJ_SIGNATURE=header",
            ),
            Err(error) => store_failure(bucket, &error),
        });
    }
    findings
}

/// Whether an object reads back as written, and is gone after its deletion.
fn put_get_delete(store: &dyn ObjectStore, bucket: Bucket) -> StoreResult<bool> {
    let id = uuid::Uuid::new_v4().to_string();
    let key = probe_key(&id);
    // Like the writes of runs, which must expire.
    let options = WriteOptions { deadline: Some(Instant::now() + WRITE_TIME_MAX), ..WriteOptions::default() };
    store.put(bucket, &key, id.as_bytes(), &options)?;
    let read = store.get(bucket, &key, None).map(|reader| {
        let mut text = String::new();
        // One byte past the expected length, to detect surplus data.
        reader.body.take(id.len() as u64 + 1).read_to_string(&mut text).is_ok() && text == id
    });
    store.delete(bucket, std::slice::from_ref(&key), &options)?;
    Ok(read? && store.head(bucket, &key)?.is_none())
}

pub(super) fn features(context: &DoctorContext) -> Vec<CheckResult> {
    let backend = match context.backend() {
        Ok(backend) => backend,
        Err(missing) => return vec![store_missing(missing)],
    };
    let store = match backend {
        Backend::Folder(_) => {
            return vec![CheckResult::ok(
                "a folder of this machine: preconditions on writes are \
         enforced",
            )];
        }
        Backend::S3(store) => store,
    };
    let (mut unconditional, mut tagless) = (Vec::new(), Vec::new());
    for bucket in Bucket::ALL {
        if let Err(error) = listed(&**store, bucket) {
            return vec![CheckResult::skipped(format!("probing the preconditions failed: {error}"))];
        }
        match store.conditions(bucket) {
            Ok(conditions) => {
                if !conditions.put || !conditions.complete {
                    unconditional.push(named(context, bucket));
                }
                if !conditions.listed_etags {
                    tagless.push(named(context, bucket));
                }
            }
            Err(error) => return vec![store_failure(bucket, &error)],
        }
    }
    let mut findings = Vec::new();
    if !unconditional.is_empty() {
        findings.push(CheckResult::warning(
            format!("the store does not enforce If-Match and If-None-Match in {}", unconditional.join(", ")),
            "no action needed: Lakemill checks the object under a short lock instead, which is slower and doesn't \
             protect against writes of other programs; a newer version of the store may enforce them",
        ));
    } else {
        findings.push(CheckResult::ok("preconditions on writes are enforced (If-Match, If-None-Match)"));
    }
    if !tagless.is_empty() {
        findings.push(CheckResult::warning(
            format!("listings have no ETags in {}", tagless.join(", ")),
            "no action needed: Lakemill compares size and time, and sends a HEAD request in doubt, which is slower",
        ));
    }
    findings
}
