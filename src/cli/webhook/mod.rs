//! `lakemill webhook`: the lake bucket's notification rules, which make the store tell the worker of new files.

mod rules;

use std::io::{BufRead, ErrorKind, IsTerminal, Read, Write};
use std::sync::Arc;

use super::args::WebhookCommand;
use super::plain::plain;
use super::services::Services;
use super::{Failure, environment};
use crate::adapters::s3::{NotificationConfiguration, RuleKind, S3Options, S3Store};
use crate::config::{Endpoint, ObjectStoreConfig};
use crate::ports::store::{Bucket, StoreError};

pub use rules::reports_new_files;

const AFTER: &str = "\
What else the store needs:
- The target of the ARN posts to http://WORKER:PORT/events/s3 and sends SVC_WEBHOOK_SECRET as its token.
- Stores with an allow-list for outbound calls (RustFS) must have the worker's origin in it.
- Some stores read rules and targets only when they start: restart such a store now.
`lakemill doctor` shows what can be seen of it from here.";
const AFTER_TOPIC: &str = "\
The store wanted a topic's rule instead of a queue's (Ceph's radosgw does): the ARN must be that of a topic whose
push endpoint is the worker's /events/s3.";
const NOT_NEEDED: &str =
    "the object store is a folder of this machine, which the worker watches by itself: no webhook is needed";
/// What to do where a store can't tell of new files.
const INSTEAD: &str = "\
if the store has no notifications, set SVC_RECONCILE_SECONDS for the workers instead (300, say): they then look through
the lake that often";
/// An answer to a question is not read further than this, in bytes.
const ANSWER_BYTES_MAX: u64 = 1_000;

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
                let kind = install(&store, arn, *compressed)?;
                tell_installed(bucket, arn, *compressed, kind, &mut out).map(|()| true)
            }
            WebhookCommand::Show => {
                let found = read(&store)?;
                rules::show(bucket, &found, &mut out).map(|()| true)
            }
            WebhookCommand::Remove { yes } => return remove(&store, bucket, *yes, &mut out),
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

/// Puts our rules beside those of others, as those of a queue or, where the store or the ARN wants it, of a topic.
fn install(store: &S3Store, arn: &str, compressed: bool) -> Result<RuleKind, String> {
    let found = read(store)?;
    let put = |kind| store.put_notifications(Bucket::Lake, &rules::with_ours(&found, kind, arn, compressed));
    let [first, second] = rules::kinds_for(arn);
    let kind = match put(first) {
        Ok(()) => first,
        Err(refused) if is_refusal(&refused) => match put(second) {
            Ok(()) => second,
            Err(again) => {
                return Err(format!(
                    "the store takes the rule neither as that of a {} nor of a {}:\n  {refused}\n  {again}\n{INSTEAD}",
                    rules::kind_name(first),
                    rules::kind_name(second)
                ));
            }
        },
        Err(error) => return Err(told(&error)),
    };
    match rules::has_ours(&read(store)?, arn, compressed) {
        true => Ok(kind),
        false => Err(format!(
            "the store accepted the rule but does not show it: it seems not to support notifications\n{INSTEAD}"
        )),
    }
}

/// Whether another kind of rule may be taken where this was not.
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

fn tell_installed(
    bucket: &str,
    arn: &str,
    compressed: bool,
    kind: RuleKind,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let suffixes = rules::suffixes(compressed).join(", ");
    let kind_name = rules::kind_name(kind);
    writeln!(out, "objects created in `{bucket}` under pipelines/ that end in {suffixes} go to the {kind_name} {arn}")?;
    if kind == RuleKind::Topic {
        writeln!(out, "{AFTER_TOPIC}")?;
    }
    writeln!(out, "{AFTER}")
}

fn remove(store: &S3Store, bucket: &str, yes: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let failed = |error: std::io::Error| Failure::Other(error.to_string());
    let found = read(store)?;
    if found.is_empty() {
        writeln!(out, "`{bucket}` has no rules").map_err(failed)?;
        return Ok(true);
    }
    let foreign = found.entries().iter().filter(|entry| !rules::is_ours(entry)).count();
    if foreign > 0 && !yes {
        let count = if foreign == 1 { "a rule of others".to_owned() } else { format!("{foreign} rules of others") };
        rules::show(bucket, &found, &mut std::io::stderr()).map_err(failed)?;
        if !std::io::stdin().is_terminal() {
            let refusal = format!("`{bucket}` has {count}, which would go too: --yes removes all");
            return Err(Failure::Other(refusal));
        }
        if !agreed(&format!("remove all, {count} too? [y/N] ")).map_err(failed)? {
            writeln!(out, "nothing was removed").map_err(failed)?;
            return Ok(false);
        }
    }
    store
        .put_notifications(Bucket::Lake, &NotificationConfiguration::default())
        .map_err(|error| plain(&error.to_string()))?;
    writeln!(out, "`{bucket}` has no rules any more: new files start no runs until `lakemill webhook install`")
        .map_err(failed)?;
    Ok(true)
}

fn agreed(question: &str) -> std::io::Result<bool> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
