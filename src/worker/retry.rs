//! Retries, logged once when an outage starts and once when it ends.

use std::fmt::Display;
use std::time::Duration;

use crate::runtime::threads::Instant;

/// Logs the start and the end of an outage.
pub(super) struct OutageLog {
    what: &'static str,
    since: Option<Instant>,
}

impl OutageLog {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, since: None }
    }

    /// Logs the first failure.
    pub(super) fn failed(&mut self, error: &dyn Display) {
        if self.since.is_none() {
            tracing::warn!(%error, "{} failed; retrying", self.what);
            self.since = Some(Instant::now());
        }
    }

    /// Logs the end of an outage, if there was one.
    pub(super) fn recovered(&mut self) {
        if let Some(since) = self.since.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "{} works again", self.what);
        }
    }
}

/// Retries `call` until it succeeds, `give_up` returns true, or `time_max` is over.
pub(super) fn retry_until<T, E: Display>(
    what: &'static str,
    time_max: Duration,
    mut call: impl FnMut() -> Result<T, E>,
    mut pause: impl FnMut(),
    mut give_up: impl FnMut() -> bool,
) -> Result<T, E> {
    let mut outage = OutageLog::new(what);
    let began = Instant::now();
    loop {
        match call() {
            Ok(value) => {
                outage.recovered();
                return Ok(value);
            }
            Err(error) => {
                outage.failed(&error);
                if began.elapsed() >= time_max || give_up() {
                    return Err(error);
                }
            }
        }
        pause();
    }
}
