//! The message of a failed `lakemill run`, with object keys shown as places of its input and output.

use std::io::{self, Write};

use super::location::Location;
use super::output::STATE_FOLDER;
use super::plain::plain;
use crate::domain::job::{RunError, RunErrorCode};
use crate::engine::run::RunFailure;

/// Prefix of every key of a run; the rest is a path in its input or output.
const PREFIX: &str = "pipelines/local/";

/// Writes `failure` of a run from `input` to `output`.
///
/// # Errors
/// `out` can't be written.
pub fn write(failure: &RunFailure, input: &Location, output: &Location, out: &mut dyn Write) -> io::Result<()> {
    let error = &failure.error;
    let code = error.code;
    writeln!(out, "the run failed: {} ({code})", plain(&as_paths(&error.message, input, output)))?;
    for line in detail(error, input).lines() {
        writeln!(out, "  {}", plain(&as_paths(line, input, output)))?;
    }
    if let Some(rejects) = error.path.as_deref().and_then(|p| p.strip_prefix(PREFIX)?.strip_prefix("jobs/")) {
        writeln!(out, "  rejected rows: {}", plain(&format!("{output}/{STATE_FOLDER}/jobs/{rejects}")))?;
    }
    if !failure.partially_published {
        writeln!(out, "  nothing was published: the tables are unchanged")?;
    }
    Ok(())
}

/// Advice in terms of the command line.
fn detail(error: &RunError, input: &Location) -> String {
    let detail = error.detail.as_deref().unwrap_or_default();
    let added = if error.code == RunErrorCode::NoInput {
        format!(
            "\n\
         globs are relative to `{input}`; `--clean` makes a clean run"
        )
    } else if error.code == RunErrorCode::AccessDenied {
        return "give this user read access to the input and write access to the output".to_owned();
    } else {
        String::new()
    };
    format!("{detail}{added}")
}

/// Replaces bucket and key in a store's error by the path or address.
fn as_paths(text: &str, input: &Location, output: &Location) -> String {
    let (input, output) = (input.to_string(), output.to_string());
    let state = format!("{output}/{STATE_FOLDER}");
    for (bucket, folder) in [("lake", input), ("warehouse", output), ("pipelines", state)] {
        if let Some(rest) = text.strip_prefix(bucket).and_then(|t| t.strip_prefix(" bucket: ")) {
            return rest.replace(PREFIX, &format!("{folder}/"));
        }
    }
    text.to_owned()
}
