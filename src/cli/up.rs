//! `lakemill up`: everything in one process, on a store and a queue in one folder; nothing to install.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::args::UpArgs;
use super::embedded::Embedded;
use super::serve::Serving;
use super::services::Services;
use super::{Failure, demo, logging};
use crate::config::{Environment, WorkerConfig};
use crate::ports::Expressions;

/// Serves until it is told to end.
///
/// # Errors
/// What can't be started, and why.
pub fn run(args: &UpArgs, expressions: Arc<dyn Expressions>) -> Result<(), Failure> {
    let embedded = Embedded::make(&args.data)?;
    let process = Environment::of_process();
    let overlay = |name: &str| match name {
        "PORT" => Some(OsString::from(args.worker_port.to_string())),
        _ => embedded.variable(name, &process),
    };
    let loaded = WorkerConfig::from_env(&Environment { get: &overlay, read: process.read })?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    if args.demo {
        demo::provide(&services, loaded.config.attempts_max)?;
    }
    let serving = Serving::start(&loaded.config, &services, expressions, "--worker-port")?;
    // Whoever doesn't listen needn't be told.
    let _ = tell(&embedded, &serving);
    serving.wait();
    Ok(())
}

fn tell(embedded: &Embedded, serving: &Serving) -> std::io::Result<()> {
    let lake = embedded.lake().join("pipelines");
    let mut out = std::io::stdout().lock();
    writeln!(out, "lakemill is up; Ctrl-C ends it")?;
    writeln!(out, "  CSVs go to   {}/<pipeline>/", lake.display())?;
    writeln!(out, "  tables are   {}/pipelines/<pipeline>/<table>/", embedded.warehouse().display())?;
    writeln!(out, "  configs are  {}/pipelines/<pipeline>/pipeline.json", embedded.pipelines().display())?;
    writeln!(out, "  the worker   http://{}", serving.address())?;
    writeln!(out, "  its jobs     lakemill jobs --data {} <pipeline>", quoted(embedded.root()))?;
    out.flush()
}

/// As a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted() {
        for (path, text) in [("/a/b-c_1", "/a/b-c_1"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'"), ("/ü", "'/ü'")] {
            assert_eq!(quoted(Path::new(path)), text);
        }
    }
}
