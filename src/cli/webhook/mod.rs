//! `lakemill webhook`: manages the lake bucket's notification rules, with which the store notifies the worker of new
//! files.

mod install;
mod rules;
mod store;
mod target;

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::Arc;

use super::args::WebhookCommand;
use super::command_error::CommandError;
use super::environment;
use super::services::Services;
use crate::adapters::s3::{NotificationConfiguration, S3Options, S3Store};
use crate::config::{ObjectStoreConfig, StoreEndpoint};
use crate::ports::store::Bucket;

use store::read;
use target::Target;

pub use rules::reports_new_files;

const NOT_NEEDED: &str =
    "the object store is a folder of this machine, which the worker watches directly: no webhook is needed";
/// # Errors
/// The environment is invalid, or the store failed.
pub fn run(command: &WebhookCommand) -> Result<bool, CommandError> {
    let objects = environment::load(None, ObjectStoreConfig::from_env)?;
    let bucket = &objects.buckets.lake;
    let mut out = std::io::stdout().lock();
    let said = match open(&objects)? {
        None => writeln!(out, "{NOT_NEEDED}").map(|()| true),
        Some(store) => match command {
            WebhookCommand::Install { target, compressed } => {
                let installed = install::install(&store, &Target::of(target), *compressed)?;
                installed.report(bucket, *compressed, &mut out).map(|()| true)
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

/// `None` if the object store is a folder.
fn open(objects: &ObjectStoreConfig) -> Result<Option<Arc<S3Store>>, String> {
    match (&objects.endpoint, S3Options::from_config(objects, Services::clock())) {
        (StoreEndpoint::S3(_), Some(options)) => {
            S3Store::open(options).map(|store| Some(Arc::new(store))).map_err(|error| error.to_string())
        }
        (StoreEndpoint::Folder(_), _) | (StoreEndpoint::S3(_), None) => Ok(None),
    }
}

/// Maximum length of a typed answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 1_000;

/// Removes all rules, and checks that they are gone. False if the user declined.
fn remove(store: &S3Store, bucket: &str, yes: bool, out: &mut dyn Write) -> Result<bool, CommandError> {
    let failed = |error: std::io::Error| CommandError::Other(error.to_string());
    let found = read(store)?;
    if found.is_empty() {
        writeln!(out, "`{bucket}` has no rules").map_err(failed)?;
        return Ok(true);
    }
    let foreign = found.entries().iter().filter(|entry| !rules::is_ours(entry)).count();
    if foreign > 0 && !yes {
        let count = if foreign == 1 {
            "a rule of another program".to_owned()
        } else {
            format!(
                "{foreign} rules of other \
         programs"
            )
        };
        rules::show(bucket, &found, &mut std::io::stderr()).map_err(failed)?;
        if !std::io::stdin().is_terminal() {
            let refusal = format!("`{bucket}` also has {count}: --yes removes all rules");
            return Err(CommandError::Other(refusal));
        }
        if !agreed(&format!("remove all rules, including {count}? [y/N] ")).map_err(failed)? {
            writeln!(out, "nothing was removed").map_err(failed)?;
            return Ok(false);
        }
    }
    if let Some(how) = remove_all(store, bucket)? {
        writeln!(out, "{how}").map_err(failed)?;
    }
    writeln!(out, "`{bucket}` has no rules: new files don't start runs until `lakemill webhook install`")
        .map_err(failed)?;
    Ok(true)
}

/// Puts an empty configuration. If rules remain, deletes them as radosgw requires; returns a text about the outcome.
fn remove_all(store: &S3Store, bucket: &str) -> Result<Option<String>, String> {
    let why = match store.put_notifications(Bucket::Lake, &NotificationConfiguration::default()) {
        Ok(()) => "accepted an empty configuration and kept its rules".to_owned(),
        // Reading fails as well if the store can't be reached.
        Err(error) => format!("rejected an empty configuration ({error})"),
    };
    if read(store)?.is_empty() {
        return Ok(None);
    }
    let deleted = store.delete_notifications(Bucket::Lake, None);
    let left = read(store)?;
    if left.is_empty() {
        return Ok(Some(format!("the store {why}; its rules were deleted by `DELETE ?notification`")));
    }
    let deleting = match deleted {
        Ok(()) => "accepted `DELETE ?notification`".to_owned(),
        Err(error) => format!("rejected `DELETE ?notification` ({error})"),
    };
    let left: Vec<String> = left.entries().iter().map(|entry| format!("  {}", rules::line(entry))).collect();
    Err(format!(
        "the store {why}, and {deleting}; `{bucket}` still has\n{}\nremove them with the store's own tools",
        left.join("\n")
    ))
}

fn agreed(question: &str) -> std::io::Result<bool> {
    let mut stderr = std::io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
