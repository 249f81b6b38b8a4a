//! The log of the services, on stderr: one line per event, as JSON or text.
//!
//! Invariants: a line is written by one write, and no external text can end it or start another; a failing write stops
//! nothing.
//! Must not: log secrets (their type formats as redacted).
//!
//! [`record`] collects the fields of an event and of its spans; [`line`] formats them. `tracing-subscriber`'s own formats
//! don't fit the documented one: they nest fields, name keys differently, don't escape bidirectional controls, and don't
//! bound the length of values.

mod line;
mod record;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;
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

/// The target of our events. Events of other targets are logged at WARN and above.
const OWN_TARGET: &str = "lakemill";

/// Receives whole lines with their line ends.
type Sink = dyn Fn(&str) + Send + Sync;

/// Starts logging events and panics to stderr. Without a configured format: text on a terminal, else JSON. A second call
/// has no effect.
pub fn start(config: &LogConfig, clock: Arc<dyn Clock>) {
    let terminal = std::io::stderr().is_terminal();
    let style = match (config.format, terminal) {
        (Some(LogFormat::Json), _) | (None, false) => Style::Json,
        (Some(LogFormat::Text), coloured) | (None, coloured @ true) => Style::Text { coloured },
    };
    // Nothing can be done if stderr is closed.
    let sink: Arc<Sink> = Arc::new(|line| drop(std::io::stderr().lock().write_all(line.as_bytes())));
    let log = Log { level: level(config.level), style, clock, sink };
    if tracing::subscriber::set_global_default(subscriber(log.clone())).is_ok() {
        install_panic_hook(log);
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
    /// Minimum severity of our events.
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

    fn is_enabled(&self, metadata: &Metadata<'_>) -> bool {
        let least = if is_own(metadata.target()) { self.level } else { self.level.min(Level::WARN) };
        *metadata.level() <= least
    }
}

fn is_own(target: &str) -> bool {
    target.strip_prefix(OWN_TARGET).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl Layer<Registry> for Log {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, Registry>) -> bool {
        self.is_enabled(metadata)
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

/// Logs panics instead of printing them.
fn install_panic_hook(log: Log) {
    std::panic::set_hook(Box::new(move |info| log_panic(&log, info)));
}

/// Bypasses `tracing`, which may itself have panicked.
fn log_panic(log: &Log, info: &PanicHookInfo<'_>) {
    let mut fields = Fields::default();
    fields.put_text("thread", std::thread::current().name().unwrap_or("unnamed"));
    if let Some(place) = info.location() {
        fields.put_text("place", &place.to_string());
    }
    fields.put_text("panic", info.payload_as_str().unwrap_or("no text"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        fields.put_text("backtrace", &backtrace.to_string());
    }
    log.write(Level::ERROR, None, "thread panicked", &fields);
}

#[cfg(test)]
mod tests;
