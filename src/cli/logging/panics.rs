//! Panics, told in the log instead of as text between its lines.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use tracing::Level;

use super::Log;
use super::record::Fields;

const EVENT: &str = "a thread panicked";

/// Takes the place of the hook that prints.
pub(super) fn listen(log: Log) {
    std::panic::set_hook(Box::new(move |info| tell(&log, info)));
}

/// Goes past `tracing`, which may be what panics.
fn tell(log: &Log, info: &PanicHookInfo<'_>) {
    let mut fields = Fields::default();
    fields.put_text("thread", std::thread::current().name().unwrap_or("unnamed"));
    if let Some(place) = info.location() {
        fields.put_text("place", &place.to_string());
    }
    fields.put_text("panic", info.payload_as_str().unwrap_or("a value that is no text"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        fields.put_text("backtrace", &backtrace.to_string());
    }
    log.write(Level::ERROR, None, EVENT, &fields);
}
