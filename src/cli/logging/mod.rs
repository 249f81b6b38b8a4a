//! The log of the services, on stderr: one line an event, as JSON or as text.
//!
//! Invariants: a line is written by one write, and nothing that comes from outside can end it or begin another; a log
//! that can't be written stops nobody.
//! Must not: take secrets (their type shows none).
//!
//! [`record`] is what an event says, with the fields of the spans around it; [`line`] is how it reads; [`panics`] tells
//! of panics the same way.

mod line;
mod panics;
mod record;

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::{Layer, registry};

use crate::config::{LogConfig, LogFormat, LogLevel};
use crate::runtime::Clock;

use line::{Line, Style};
use record::Fields;

/// The target of our own events; others are logged from WARN up.
const OWN_TARGET: &str = "lakemill";

/// Takes whole lines, line end included.
type Sink = dyn Fn(&str) + Send + Sync;

/// Logs to stderr from now on, panics too. `text` where the format is not given and stderr is a terminal. A second call
/// changes nothing.
pub fn start(config: &LogConfig, clock: Arc<dyn Clock>) {
    let terminal = std::io::stderr().is_terminal();
    let style = match (config.format, terminal) {
        (Some(LogFormat::Json), _) | (None, false) => Style::Json,
        (Some(LogFormat::Text), coloured) | (None, coloured @ true) => Style::Text { coloured },
    };
    // There is nobody left to tell that stderr can't be written.
    let sink: Arc<Sink> = Arc::new(|line| drop(std::io::stderr().lock().write_all(line.as_bytes())));
    let log = Log { level: level(config.level), style, clock, sink };
    if tracing::subscriber::set_global_default(subscriber(log.clone())).is_ok() {
        panics::listen(log);
    }
}

fn subscriber(log: Log) -> impl Subscriber + Send + Sync {
    registry().with(log)
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    }
}

#[derive(Clone)]
struct Log {
    /// Least severity of our own events.
    level: Level,
    style: Style,
    clock: Arc<dyn Clock>,
    sink: Arc<Sink>,
}

impl Log {
    fn write(&self, level: Level, target: Option<&str>, event: &str, fields: &Fields) {
        let line = Line { time: self.clock.now(), level, event, target, fields };
        (self.sink)(&line.render(self.style));
    }

    fn takes(&self, metadata: &Metadata<'_>) -> bool {
        let least = if is_own(metadata.target()) { self.level } else { self.level.min(Level::WARN) };
        *metadata.level() <= least
    }
}

fn is_own(target: &str) -> bool {
    target.strip_prefix(OWN_TARGET).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl Layer<Registry> for Log {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, Registry>) -> bool {
        self.takes(metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, Registry>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, Registry>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, Registry>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.put_all(of_span);
            }
        }
        event.record(&mut fields);
        let message = fields.take_message();
        let target = event.metadata().target();
        self.write(*event.metadata().level(), (!is_own(target)).then_some(target), &message, &fields);
    }
}

#[cfg(test)]
mod tests;
