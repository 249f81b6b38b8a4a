//! `lakemill doctor`: checks all dependencies of the services in their environment, and suggests fixes.
//!
//! [`CHECKS`] is the table of checks. Invariants: a check that fails, panics or hangs doesn't affect others; nothing is
//! created that the services would create (they might not be allowed to write a file of the user running doctor), and
//! probes are deleted again.

mod cgroup;
mod check;
mod clocks;
mod context;
mod event_queue;
mod iceberg_catalog;
mod kv;
mod machine;
mod objects;
mod peers;
mod proxy;
mod secrets;
mod settings;
mod tables;
mod web;
mod webhook;
mod worker;

use std::io::Write;
use std::sync::Arc;

use serde_json::json;

use super::args::DoctorArgs;
use super::command_error::CommandError;
use super::embedded::Embedded;
use super::plain::plain;
use crate::config::Environment;
use check::{CheckResult, CheckSpec, RunningCheck, Severity};
use context::DoctorContext;

/// In the order of the report.
const CHECKS: &[CheckSpec] = &[
    CheckSpec { name: "worker environment", run: settings::worker },
    CheckSpec { name: "web environment", run: settings::web },
    CheckSpec { name: "secrets", run: secrets::strength },
    CheckSpec { name: "proxy", run: proxy::routes },
    CheckSpec { name: "buckets", run: objects::buckets },
    CheckSpec { name: "objects", run: objects::round_trip },
    CheckSpec { name: "store features", run: objects::features },
    CheckSpec { name: "published tables", run: tables::logs },
    CheckSpec { name: "iceberg catalog", run: iceberg_catalog::access },
    CheckSpec { name: "key-value store", run: kv::health },
    CheckSpec { name: "queue", run: kv::queue },
    CheckSpec { name: "clock", run: clocks::skew },
    CheckSpec { name: "scratch", run: machine::scratch },
    CheckSpec { name: "cache", run: web::cache },
    CheckSpec { name: "memory", run: machine::memory },
    CheckSpec { name: "file descriptors", run: machine::descriptors },
    CheckSpec { name: "data folder", run: machine::data_folder },
    CheckSpec { name: "sandbox", run: web::sandbox },
    CheckSpec { name: "worker", run: worker::responds },
    CheckSpec { name: "refused events", run: worker::refused_events },
    CheckSpec { name: "web service", run: web::responds },
    CheckSpec { name: "shared secrets", run: peers::secrets },
    CheckSpec { name: "webhook", run: webhook::rule },
    CheckSpec { name: "event queue", run: event_queue::state },
];

/// False if there is a problem.
///
/// # Errors
/// `--data` is not a folder of `lakemill up`, or stdout can't be written.
pub fn run(args: &DoctorArgs) -> Result<bool, CommandError> {
    let process = Environment::from_process();
    let context = Arc::new(match &args.data {
        Some(root) => DoctorContext::for_folder(&Embedded::open(root)?, &process)?,
        None => DoctorContext::of(&process),
    });
    let running: Vec<RunningCheck> = CHECKS.iter().map(|check| RunningCheck::start(check, &context)).collect();
    let mut out = std::io::stdout().lock();
    let written = if args.json { write_json(running, &mut out) } else { write_text(running, &mut out) };
    Ok(written.map_err(|error| error.to_string())?)
}

fn write_text(running: Vec<RunningCheck>, out: &mut dyn Write) -> std::io::Result<bool> {
    let width = CHECKS.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let (mut problems, mut warnings) = (0, 0);
    for check in running {
        let name = check.name();
        for CheckResult { level, message, advice } in check.findings() {
            let advice = advice.map_or_else(String::new, |advice| format!(" → {advice}"));
            writeln!(out, "{:<7}  {name:<width$}  {}", level.name(), plain(&format!("{message}{advice}")))?;
            problems += usize::from(level == Severity::Problem);
            warnings += usize::from(level == Severity::Warning);
        }
    }
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    match problems + warnings {
        0 => writeln!(out, "no problems")?,
        _ => writeln!(out, "{}, {}", counted(problems, "problem"), counted(warnings, "warning"))?,
    }
    Ok(problems == 0)
}

fn write_json(running: Vec<RunningCheck>, out: &mut dyn Write) -> std::io::Result<bool> {
    let (mut ok, mut checks) = (true, Vec::new());
    for check in running {
        let name = check.name();
        for finding in check.findings() {
            ok &= finding.level != Severity::Problem;
            let (level, message, advice) = (finding.level.name(), finding.message, finding.advice);
            checks.push(json!({ "check": name, "level": level, "message": message, "advice": advice }));
        }
    }
    writeln!(out, "{:#}", json!({ "ok": ok, "checks": checks }))?;
    Ok(ok)
}
