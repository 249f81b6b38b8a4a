//! Removes the rules of the lake bucket, and reads back whether they are gone.

use std::io::{BufRead, IsTerminal, Read, Write};

use super::{read, rules};
use crate::adapters::s3::{NotificationConfiguration, S3Store};
use crate::cli::Failure;
use crate::ports::store::Bucket;

/// An answer to a question is not read further than this, in bytes.
const ANSWER_BYTES_MAX: u64 = 1_000;

/// False if the answer to the question was no.
pub(super) fn remove(store: &S3Store, bucket: &str, yes: bool, out: &mut dyn Write) -> Result<bool, Failure> {
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
    if let Some(how) = remove_all(store, bucket)? {
        writeln!(out, "{how}").map_err(failed)?;
    }
    writeln!(out, "`{bucket}` has no rules any more: new files start no runs until `lakemill webhook install`")
        .map_err(failed)?;
    Ok(true)
}

/// Applies an empty configuration; where that leaves rules, deletes them as radosgw wants it. Says so in that case.
fn remove_all(store: &S3Store, bucket: &str) -> Result<Option<String>, String> {
    let why = match store.put_notifications(Bucket::Lake, &NotificationConfiguration::default()) {
        Ok(()) => "accepted an empty configuration and kept its rules".to_owned(),
        // A store that is away fails the reading, too.
        Err(error) => format!("refused an empty configuration ({error})"),
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
        Err(error) => format!("refused `DELETE ?notification` ({error})"),
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
