//! Tells an outage once when it begins and once when it ends.

use std::fmt::Display;
use std::time::Duration;

use crate::runtime::threads::Instant;

/// What could not be done for a while.
pub(super) struct Outage {
    what: &'static str,
    since: Option<Instant>,
}

impl Outage {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, since: None }
    }

    /// It failed. Told the first time only.
    pub(super) fn tell(&mut self, error: &dyn Display) {
        if self.since.is_none() {
            tracing::warn!(%error, "{} failed; trying again until it works", self.what);
            self.since = Some(Instant::now());
        }
    }

    /// It worked.
    pub(super) fn over(&mut self) {
        if let Some(since) = self.since.take() {
            tracing::info!(seconds = since.elapsed().as_secs(), "{} works again", self.what);
        }
    }
}

/// Tries until `tried` gives something, `give_up` says so, or it took `longest`; pauses in between with `pause`.
pub(super) fn persist<T, E: Display>(
    what: &'static str,
    longest: Duration,
    mut tried: impl FnMut() -> Result<T, E>,
    mut pause: impl FnMut(),
    mut give_up: impl FnMut() -> bool,
) -> Result<T, E> {
    let mut outage = Outage::new(what);
    let began = Instant::now();
    loop {
        match tried() {
            Ok(value) => {
                outage.over();
                return Ok(value);
            }
            Err(error) => {
                outage.tell(&error);
                if began.elapsed() >= longest || give_up() {
                    return Err(error);
                }
            }
        }
        pause();
    }
}
