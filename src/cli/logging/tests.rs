//! Whole lines.

use parking_lot::Mutex;
use std::io;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::*;

const TS: &str = "2026-03-04T05:06:07.089Z";

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(TS).unwrap().into()
    }

    fn since_boot(&self) -> Duration {
        Duration::ZERO
    }
}

/// The lines that `body` logs.
fn lines(level: Level, style: Style, body: impl FnOnce()) -> Vec<String> {
    let (log, lines) = log_to_memory(level, style);
    tracing::subscriber::with_default(subscriber(log), body);
    lines()
}

fn log_to_memory(level: Level, style: Style) -> (Log, impl Fn() -> Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let sink: Arc<Sink> = Arc::new(move |line| {
        kept.lock().push(line.to_owned());
    });
    let log = Log { level, style, clock: Arc::new(Fixed), sink };
    (log, move || lines.lock().clone())
}

#[track_caller]
fn check_line(style: Style, body: impl FnOnce(), expected: &str) {
    assert_eq!(lines(Level::TRACE, style, body), [format!("{expected}\n")]);
}

const TEXT: Style = Style::Text { coloured: false };

#[test]
fn event_is_one_json_object_with_typed_fields() {
    let id = "0197";
    let error = io::Error::other("the store said \"no\"");
    check_line(
        Style::Json,
        || {
            tracing::info!(job_id = %id, pipeline = "trips", fence = 7_u64, attempt = 2, late = true, ratio = 0.5,
                code = ?Some(3), gone = None::<u64>, %error, "the job has failed");
        },
        &format!(
            r#"{{"ts":"{TS}","level":"info","event":"the job has failed","job_id":"0197","pipeline":"trips","fence":7,"attempt":2,"late":true,"ratio":0.5,"code":"Some(3)","error":"the store said \"no\""}}"#
        ),
    );
}

#[test]
fn non_finite_numbers_are_text() {
    check_line(
        Style::Json,
        || tracing::warn!(nan = f64::NAN, big = u128::MAX, negative = -3_i64, "odd"),
        &format!(
            r#"{{"ts":"{TS}","level":"warn","event":"odd","nan":"NaN","big":"340282366920938463463374607431768211455","negative":-3}}"#
        ),
    );
}

#[test]
fn external_text_cannot_end_a_line_or_control_the_terminal() {
    let bad = "x\n{\"ts\":\"forged\"}\r\u{1b}[2J\u{9b}31m\u{2028}\u{202e}é";
    check_line(
        Style::Json,
        || tracing::error!(key = bad, "{bad}"),
        &format!(
            r#"{{"ts":"{TS}","level":"error","event":"{shown}","key":"{shown}"}}"#,
            shown = r#"x\n{\"ts\":\"forged\"}\r\u001b[2J\u009b31m\u2028\u202eé"#
        ),
    );
    check_line(
        TEXT,
        || tracing::error!(key = "a b\nERROR forged=\"1\"", tag = "x\u{9b}y", "stop\nnow"),
        &format!(r#"{TS} ERROR {:<40}  key="a b\nERROR forged=\"1\""  tag=x\u{{9b}}y"#, "stop\\nnow"),
    );
}

#[test]
fn text_is_aligned_and_coloured_only_when_asked_to() {
    let event = || tracing::info!(job_id = "j", empty = "", n = 3, "the job has started");
    check_line(TEXT, event, &format!("{TS}  INFO {:<40}  job_id=j  empty=\"\"  n=3", "the job has started"));
    check_line(TEXT, || tracing::warn!("bare"), &format!("{TS}  WARN bare"));
    let (dim, off, green) = ("\u{1b}[2m", "\u{1b}[0m", "\u{1b}[32m");
    check_line(
        Style::Text { coloured: true },
        event,
        &format!(
            "{dim}{TS}{off} {green} INFO{off} {:<40}  {dim}job_id={off}j  {dim}empty={off}\"\"  {dim}n={off}3",
            "the job has started"
        ),
    );
}

#[test]
fn span_fields_come_first_and_event_fields_win() {
    let body = || {
        let request = tracing::info_span!("request", request_id = "r-1", status = tracing::field::Empty);
        let _request = request.enter();
        request.record("status", 503);
        let _job = tracing::info_span!("job", job_id = "outer").entered();
        tracing::info!(job_id = "own", "done");
    };
    let expected =
        format!(r#"{{"ts":"{TS}","level":"info","event":"done","request_id":"r-1","status":503,"job_id":"own"}}"#);
    check_line(Style::Json, body, &expected);
}

#[test]
fn fields_cannot_override_those_of_the_line() {
    check_line(
        Style::Json,
        || tracing::info!(ts = "never", level = 9, event = "other", target = "t", r#type = "csv", "true"),
        &format!(
            r#"{{"ts":"{TS}","level":"info","event":"true","ts_":"never","level_":9,"event_":"other","target_":"t","type":"csv"}}"#
        ),
    );
}

#[test]
fn foreign_events_are_logged_from_warn_up_and_say_where_they_come_from() {
    let body = || {
        tracing::info!(target: "redis::client", "noise");
        tracing::info!(target: "lakemill_fake", "noise");
        tracing::warn!(target: "redis::client", "lost");
        tracing::debug!(target: "lakemill", "ours");
        tracing::debug!(target: "lakemill::worker", "ours too");
    };
    let event = |level: &str, event: &str, rest: &str| {
        format!("{{\"ts\":\"{TS}\",\"level\":\"{level}\",\"event\":\"{event}\"{rest}}}\n")
    };
    let lost = event("warn", "lost", ",\"target\":\"redis::client\"");
    let ours = [event("debug", "ours", ""), event("debug", "ours too", "")];
    assert_eq!(lines(Level::DEBUG, Style::Json, body), [std::slice::from_ref(&lost), &ours[..]].concat());
    assert_eq!(lines(Level::WARN, Style::Json, body), [lost]);
    assert!(lines(Level::ERROR, Style::Json, body).is_empty());
}

#[test]
fn long_texts_are_truncated() {
    let logged = lines(Level::INFO, Style::Json, || tracing::info!(key = "ü".repeat(20_000), "long"));
    assert!(logged[0].len() < 17_000 && logged[0].ends_with("ü…\"}\n"), "{}", logged[0].len());
}

#[test]
fn panic_is_one_line_with_thread_and_location() {
    let (log, lines) = log_to_memory(Level::ERROR, Style::Json);
    let before = std::panic::take_hook();
    // Other tests may panic meanwhile on threads of other names.
    install_panic_hook(log);
    let thread = std::thread::Builder::new().name("doomed".into());
    let ended = thread.spawn(|| panic!("no\nway")).map(std::thread::JoinHandle::join);
    std::panic::set_hook(before);
    assert!(ended.unwrap().is_err());
    let line = lines().into_iter().find(|line| line.contains("doomed")).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    let of = |name: &str| parsed[name].as_str().unwrap_or_default().to_owned();
    assert_eq!((of("ts").as_str(), of("level").as_str(), of("event").as_str()), (TS, "error", "thread panicked"));
    assert_eq!(of("panic"), "no\nway");
    assert!(of("place").starts_with(file!()), "{line}");
}
