//! `lakemill up`: all services in one process, with store and queue in one folder; nothing to install.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use super::args::UpArgs;
use super::command_error::CommandError;
use super::embedded::{Addresses, Embedded, FolderLock};
use super::serve::{Serving, check_free};
use super::services::Services;
use super::supervisor::{Notices, ServiceNotifier};
use super::web::{self, WebServing};
use super::{demo, expressions, logging};
use crate::config::{Environment, EnvironmentError, WebConfig, WithWarnings, WorkerConfig};
use crate::pipelines;
use crate::worker::Lifetime;

/// Serves until it is stopped.
///
/// # Errors
/// The part that can't be started, and the reason.
pub fn run(args: &UpArgs) -> Result<(), CommandError> {
    let embedded = Embedded::make(&args.data)?;
    let served = embedded.lock()?;
    let process = Environment::from_process();
    let password = match process.has_secret("SVC_ADMIN_PASSWORD_HASH") {
        true => Password::Given,
        false => embedded.make_password()?.map_or(Password::Before, Password::New),
    };
    let configs = configs(args, &embedded, &process);
    let done = configs.and_then(|configs| serve(args, &embedded, &served, configs, &password));
    done.inspect_err(|_| {
        // The password was not shown, so the next start generates another.
        if matches!(password, Password::New(_)) {
            let _ = std::fs::remove_file(embedded.password_file());
        }
    })
}

/// Where the password comes from.
enum Password {
    /// Its hash is in the environment.
    Given,
    /// Generated and shown at an earlier start.
    Before,
    /// Shown now.
    New(String),
}

/// The configs of both services.
struct Configs {
    worker: WorkerConfig,
    web: WebConfig,
    warnings: Vec<String>,
}

/// Interval of reconciliation, unless set. It needs only listings of a local folder.
const RECONCILE_SECONDS: &str = "3600";

/// Both configs, before anything is started.
///
/// # Errors
/// All faults of either environment, in one list.
fn configs(args: &UpArgs, embedded: &Embedded, process: &Environment<'_>) -> Result<Configs, CommandError> {
    let of = |port: u16, name: &str| match name {
        "PORT" => Some(OsString::from(port.to_string())),
        // The worker's address is known once it listens.
        "SVC_WORKER_URL" => None,
        "SVC_RECONCILE_SECONDS" => embedded.variable(name, process).or_else(|| Some(RECONCILE_SECONDS.into())),
        _ => embedded.variable(name, process),
    };
    let (of_worker, of_web) = (|name: &str| of(args.worker_port, name), |name: &str| of(args.port, name));
    let worker = WorkerConfig::from_env(&Environment { get: &of_worker, read: process.read });
    let web = WebConfig::from_env(&Environment { get: &of_web, read: process.read });
    let web = web.and_then(|loaded| web::password(&loaded.config).map(|_| loaded));
    let (worker, web) = match (worker, web) {
        (Ok(worker), Ok(web)) => (worker, web),
        (worker, web) => {
            let mut faults = worker.err().map_or_else(Vec::new, |error| error.faults);
            let more = web.err().map_or_else(Vec::new, |error| error.faults);
            faults.extend(more.into_iter().filter(|fault| !faults.contains(fault)).collect::<Vec<_>>());
            return Err(EnvironmentError { faults }.into());
        }
    };
    let (WithWarnings { config: worker, mut warnings }, WithWarnings { config: web, warnings: more }) = (worker, web);
    warnings.extend(more.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>());
    Ok(Configs { worker, web, warnings })
}

fn serve(
    args: &UpArgs,
    embedded: &Embedded,
    served: &FolderLock,
    configs: Configs,
    password: &Password,
) -> Result<(), CommandError> {
    let Configs { worker: of_worker, web: mut of_web, warnings } = configs;
    logging::start(&of_worker.log, Services::clock());
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    // Recorded before binding, in case it fails.
    let wanted = Addresses {
        worker: SocketAddr::new(of_worker.server.bind, of_worker.server.port),
        web: SocketAddr::new(of_web.server.bind, of_web.server.port),
    };
    served.announce(wanted)?;
    check_free(wanted.worker, "--worker-port")?;
    check_free(wanted.web, "--port")?;
    let services = Services::open(&of_worker.objects, &of_worker.kv)?;
    begin(&services)?;
    if args.demo {
        demo::provide(&services, of_worker.attempts_max)?;
    }
    let notices = Notices::new();
    let expressions = expressions::processes_of_worker(of_worker.concurrency)?;
    let worker = Serving::start(
        &of_worker,
        &services,
        expressions,
        "--worker-port",
        notices.notifier(),
        Lifetime::UntilStopped,
    )?;
    of_web.worker_url = format!("http://{}", worker.address());
    let started = WebServing::start(&of_web, &services, "--port").and_then(|web| {
        served.announce(Addresses { worker: worker.address(), web: web.address() })?;
        Ok(web)
    });
    let web = match started {
        Ok(web) => web,
        Err(failure) => {
            worker.force_stop();
            return Err(failure);
        }
    };
    // Stdout may be closed.
    let _ = print_addresses(embedded, &worker, &web, password);
    let supervisor = ServiceNotifier::start(worker.watched().and(web.watched()), notices);
    worker.wait(|| web.stop());
    drop(supervisor);
    Ok(())
}

/// Marks an empty queue as initialized if there are no pipelines: no data was lost, so nothing needs to be compared.
fn begin(services: &Services) -> Result<(), String> {
    if !pipelines::any(&*services.store).map_err(|e| e.to_string())? {
        services.kv.mark_initialized().map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn print_addresses(
    embedded: &Embedded,
    worker: &Serving,
    web: &WebServing,
    password: &Password,
) -> std::io::Result<()> {
    let lake = embedded.lake().join("pipelines");
    let mut out = std::io::stdout().lock();
    writeln!(out, "lakemill is running; Ctrl-C stops it")?;
    writeln!(out, "  open         http://{}", web.address())?;
    match password {
        Password::New(password) => writeln!(out, "  password     {password}  (shown only once; keep it)")?,
        Password::Before => {
            let file = embedded.password_file();
            writeln!(out, "  password     shown at the first start; to generate a new one, delete {}", quoted(&file))?;
        }
        Password::Given => writeln!(out, "  password     as set in SVC_ADMIN_PASSWORD_HASH")?,
    }
    writeln!(out, "  CSVs go to   {}/<pipeline>/", lake.display())?;
    writeln!(out, "  tables are   {}/pipelines/<pipeline>/<table>/", embedded.warehouse().display())?;
    writeln!(out, "  configs are  {}/pipelines/<pipeline>/pipeline.json", embedded.pipelines().display())?;
    writeln!(out, "  the worker   http://{}", worker.address())?;
    writeln!(out, "  its jobs     lakemill jobs --data {} <pipeline>", quoted(embedded.root()))?;
    out.flush()
}

/// Quoted for a shell.
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
