//! Prints warnings of the layers below on stderr, for instance about files that a run skipped.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use indicatif::ProgressBar;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::plain::plain;

/// Warns on stderr; control characters are escaped.
pub fn warn(text: &str) {
    // Nothing can be done if stderr is closed.
    let _ = writeln!(std::io::stderr(), "warning: {}", plain(text));
}

/// Writes each warning and error once.
pub struct Warnings {
    /// Hidden while a line is written.
    bar: ProgressBar,
    text: Mutex<BTreeSet<String>>,
}

impl Warnings {
    /// Starts listening. A second call changes nothing.
    pub fn listen(bar: &ProgressBar) {
        let warnings = Self { bar: bar.clone(), text: Mutex::default() };
        // The error means that a subscriber is already set.
        let _ = tracing::subscriber::set_global_default(warnings);
    }
}

/// An event as text: its message, then its fields.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN && metadata.target().starts_with("lakemill")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = EventText::default();
        event.record(&mut text);
        let line = plain(&format!("warning: {}{}", text.message, text.fields));
        if self.text.lock().insert(line.clone()) {
            self.bar.suspend(|| {
                let _ = writeln!(std::io::stderr(), "{line}");
            });
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
