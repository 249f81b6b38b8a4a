//! `lakemill up`: everything in one process, on a store and a queue in one folder; nothing to install.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::args::UpArgs;
use super::embedded::Embedded;
use super::serve::Serving;
use super::services::Services;
use super::supervisor::{Ends, Supervisor};
use super::web::WebServing;
use super::{Failure, demo, logging};
use crate::config::{Environment, WebConfig, WorkerConfig};
use crate::ports::Expressions;

/// Serves until it is told to end.
///
/// # Errors
/// What can't be started, and why.
pub fn run(args: &UpArgs, expressions: Arc<dyn Expressions>) -> Result<(), Failure> {
    let embedded = Embedded::make(&args.data)?;
    let _served = embedded.serve_alone()?;
    let process = Environment::of_process();
    let password = match process.gives_secret("SVC_ADMIN_PASSWORD_HASH") {
        true => Password::Given,
        false => embedded.make_password()?.map_or(Password::Before, Password::New),
    };
    serve(args, expressions, &embedded, &process, &password).inspect_err(|_| {
        // Nobody has seen it: the next start makes another.
        if matches!(password, Password::New(_)) {
            let _ = std::fs::remove_file(embedded.password_file());
        }
    })
}

/// How people know the password.
enum Password {
    /// By the environment's hash.
    Given,
    /// It was shown at an earlier start.
    Before,
    /// It is shown now.
    New(String),
}

fn serve(
    args: &UpArgs,
    expressions: Arc<dyn Expressions>,
    embedded: &Embedded,
    process: &Environment<'_>,
    password: &Password,
) -> Result<(), Failure> {
    let of_worker = |name: &str| match name {
        "PORT" => Some(OsString::from(args.worker_port.to_string())),
        _ => embedded.variable(name, process),
    };
    let loaded = WorkerConfig::from_env(&Environment { get: &of_worker, read: process.read })?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    if args.demo {
        demo::provide(&services, loaded.config.attempts_max)?;
    }
    let ends = Ends::new();
    let worker = Serving::start(&loaded.config, &services, expressions, "--worker-port", ends.teller())?;
    let of_web = |name: &str| match name {
        "PORT" => Some(OsString::from(args.port.to_string())),
        "SVC_WORKER_URL" => Some(OsString::from(format!("http://{}", worker.address()))),
        _ => embedded.variable(name, process),
    };
    let web = WebConfig::from_env(&Environment { get: &of_web, read: process.read });
    let web = web.map_err(Failure::from).and_then(|web| WebServing::start(&web.config, &services, "--port"));
    let web = match web {
        Ok(web) => web,
        Err(failure) => {
            worker.abandon();
            return Err(failure);
        }
    };
    // Whoever doesn't listen needn't be told.
    let _ = tell(embedded, &worker, &web, password);
    let supervisor = Supervisor::start(worker.watched().and(web.watched()), ends);
    worker.wait(|| web.stop());
    drop(supervisor);
    Ok(())
}

fn tell(embedded: &Embedded, worker: &Serving, web: &WebServing, password: &Password) -> std::io::Result<()> {
    let lake = embedded.lake().join("pipelines");
    let mut out = std::io::stdout().lock();
    writeln!(out, "lakemill is up; Ctrl-C ends it")?;
    writeln!(out, "  open         http://{}", web.address())?;
    match password {
        Password::New(password) => writeln!(out, "  password     {password}  (shown this once; keep it)")?,
        Password::Before => {
            let file = embedded.password_file();
            writeln!(out, "  password     as it was shown first; for a new one delete {}", quoted(&file))?;
        }
        Password::Given => writeln!(out, "  password     that of SVC_ADMIN_PASSWORD_HASH")?,
    }
    writeln!(out, "  CSVs go to   {}/<pipeline>/", lake.display())?;
    writeln!(out, "  tables are   {}/pipelines/<pipeline>/<table>/", embedded.warehouse().display())?;
    writeln!(out, "  configs are  {}/pipelines/<pipeline>/pipeline.json", embedded.pipelines().display())?;
    writeln!(out, "  the worker   http://{}", worker.address())?;
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
