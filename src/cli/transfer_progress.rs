//! The progress of a backup or a restore on a terminal, and how either failed.

use std::sync::atomic::Ordering;

use indicatif::{HumanBytes, HumanCount, ProgressStyle};

use super::command_error::CommandError;
use super::progress::Terminal;
use crate::pipelines::backup::{BackupError, TransferCounts};
use crate::ports::RunObserver as _;

/// Shows counts while objects are transferred.
pub struct TransferProgress<'a> {
    terminal: &'a Terminal,
    /// `copied`, `restored` or `checked`.
    done: &'static str,
}

impl<'a> TransferProgress<'a> {
    pub fn new(terminal: &'a Terminal, done: &'static str) -> Self {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            terminal.bar().set_style(style);
        }
        Self { terminal, done }
    }

    /// Shows the counts. Whether a signal asks to stop.
    pub fn is_stopped(&self, counts: &TransferCounts) -> bool {
        let bar = self.terminal.bar();
        if !bar.is_hidden() {
            let [seen, objects, bytes] =
                [&counts.seen, &counts.objects, &counts.bytes].map(|count| count.load(Ordering::Relaxed));
            let (seen, objects, bytes) = (HumanCount(seen), HumanCount(objects), HumanBytes(bytes));
            bar.set_message(match self.done {
                "checked" => format!("{seen} objects checked"),
                done => format!("{seen} objects · {done} {objects}, {bytes}"),
            });
        }
        self.terminal.check().is_err()
    }
}

/// The error of a command. `state`: what is true after it was stopped.
pub fn failure(error: &BackupError, state: &str) -> CommandError {
    match error {
        BackupError::Interrupted => CommandError::Interrupted(format!("{error}; {state}; run it again")),
        error => CommandError::Other(error.to_string()),
    }
}
