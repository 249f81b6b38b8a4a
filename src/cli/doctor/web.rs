//! The web service of this machine: its port, its cache, and the confinement of its queries.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use indicatif::HumanBytes;

use super::check::CheckResult;
use super::context::{DoctorContext, WebService, web_service_at};
use super::machine::existing;
use crate::cli::expressions::processes;
use crate::cli::probe::{WEB_PORT, own_address};
use crate::config::{WebConfig, WithWarnings};
use crate::sql::sandbox::{Confined, Confinement};
use crate::system::free_bytes;

/// Maximum depth of the cache folder.
const FOLDERS_DEEP_MAX: u32 = 4;
const NO_WEB: &str = "this is not a complete environment of `lakemill web`";

fn config(context: &DoctorContext) -> Option<&WebConfig> {
    context.web.as_ref().ok().map(|WithWarnings { config, .. }| config)
}

pub(super) fn responds(context: &DoctorContext) -> Vec<CheckResult> {
    let Some(config) = config(context) else { return vec![CheckResult::skipped(NO_WEB)] };
    let (bind, port) = (config.server.bind, config.server.port);
    if port == 0 {
        return vec![CheckResult::skipped("PORT is 0: the web service uses any free port and logs it")];
    }
    let at = own_address(bind, port);
    if context.shares_port() && web_service_at(at) == WebService::None {
        return vec![elsewhere(port, own_address(bind, WEB_PORT))];
    }
    vec![match TcpListener::bind((bind, port)) {
        Ok(_) => CheckResult::ok(format!("not running here; port {port} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => running_service(at).unwrap_or_else(|| {
            CheckResult::problem(
                format!("port {port} is used by another program"),
                "stop it, or set PORT to another \
             port",
            )
        }),
        Err(error) => {
            CheckResult::problem(format!("listening on `{bind}` port {port}: {error}"), "correct PORT and SVC_BIND")
        }
    }]
}

/// The shared PORT belongs to the worker, or to no service.
fn elsewhere(port: u16, at: SocketAddr) -> CheckResult {
    running_service(at).unwrap_or_else(|| {
        CheckResult::skipped(format!(
            "PORT {port} is taken as the worker's port, and no web service responds at {at}; to check the web service, run `PORT=… \
             lakemill doctor` with the web service's port"
        ))
    })
}

/// The finding about the web service at `at`; `None` if no web service listens there.
fn running_service(at: SocketAddr) -> Option<CheckResult> {
    let port = at.port();
    match web_service_at(at) {
        WebService::Healthy => Some(CheckResult::ok(format!("running on port {port}"))),
        WebService::WithoutKv => Some(CheckResult::problem(
            format!("the web service on port {port} can't reach its key-value store"),
            "see the check of the key-value store, and the web service's log",
        )),
        WebService::None => None,
    }
}

pub(super) fn cache(context: &DoctorContext) -> Vec<CheckResult> {
    let Some(config) = config(context) else { return vec![CheckResult::skipped(NO_WEB)] };
    let folder = &config.cache_dir;
    let shown = folder.display();
    let correct = "give the service's user write access, or set another folder in SVC_CACHE_DIR";
    let there = match existing(folder) {
        Some(there) if there.is_dir() => there,
        Some(file) => {
            return vec![CheckResult::problem(format!("`{shown}`: `{}` is not a folder", file.display()), correct)];
        }
        None => return vec![CheckResult::problem(format!("`{shown}` does not exist"), correct)],
    };
    // An unnamed file, which leaves nothing behind.
    if let Err(error) = tempfile::tempfile_in(&there) {
        return vec![CheckResult::problem(format!("`{}`: {error}", there.display()), correct)];
    }
    let held = folder_bytes(folder, FOLDERS_DEEP_MAX);
    let wants = config.cache_bytes.saturating_sub(held);
    match free_bytes(&there) {
        Some(free) if free < wants => {
            let (free, wants) = (HumanBytes(free), HumanBytes(wants));
            vec![CheckResult::warning(
                format!("`{shown}` has {free} free, and the cache may grow by {wants}"),
                "lower SVC_CACHE_BYTES, free some space, or set a folder on a larger disk in SVC_CACHE_DIR",
            )]
        }
        Some(_) | None => vec![CheckResult::ok(format!("`{shown}` is writable, with enough free space"))],
    }
}

/// Bytes of the files below a folder.
fn folder_bytes(folder: &Path, deep: u32) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() && deep > 0 => folder_bytes(&entry.path(), deep - 1),
        Ok(found) if found.is_file() => found.len(),
        Ok(_) | Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

/// Starts a process for SQL, and reports its confinement.
pub(super) fn sandbox(context: &DoctorContext) -> Vec<CheckResult> {
    if context.web.is_err() && context.worker.is_err() {
        return vec![CheckResult::skipped("this is not a complete environment of `lakemill web` or `lakemill worker`")];
    }
    let child = processes(1).and_then(|processes| processes.child().map_err(|error| error.to_string()));
    let confinement = child.map(|child| child.confinement());
    vec![match confinement {
        Ok(Some(confinement)) => assess(confinement),
        Ok(None) => CheckResult::problem("an SQL process didn't report its confinement", START),
        Err(error) => CheckResult::problem(error, START),
    }]
}

/// Advice if no process can be started.
const START: &str =
    "check that `lakemill-sql` is installed and of the same build, and that memory and processes are available";

fn assess(confinement: Confinement) -> CheckResult {
    let namespaces = if confinement.namespaces { ", in their own namespaces" } else { "" };
    match confinement.landlock {
        Confined::Fully | Confined::Partly if !confinement.syscalls => CheckResult::warning(
            "the kernel supports no system call filter: SQL processes may use all system calls",
            "use a kernel with seccomp filters, and a container runtime that allows processes to install one",
        ),
        Confined::Fully => {
            CheckResult::ok(format!("SQL processes are confined by Landlock and a system call filter{namespaces}"))
        }
        Confined::Partly => CheckResult::warning(
            "the kernel supports only part of Landlock: SQL processes are confined by it, a system call filter and \
             DuckDB's settings",
            "kernel 6.12 or later supports all of it",
        ),
        Confined::Not => CheckResult::warning(
            "the kernel has no Landlock: only DuckDB's settings restrict the files that SQL processes can read",
            "use a kernel of 5.13 or later with `landlock` in its list of security modules (boot parameter `lsm=`)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Severity;
    use super::*;

    #[test]
    fn kernel_without_landlock_or_filters_is_a_warning() {
        for (landlock, syscalls, level, part) in [
            (Confined::Fully, true, Severity::Ok, "confine"),
            (Confined::Fully, false, Severity::Warning, "no system call filter"),
            (Confined::Partly, true, Severity::Warning, "only part"),
            (Confined::Partly, false, Severity::Warning, "no system call filter"),
            (Confined::Not, true, Severity::Warning, "no Landlock"),
            (Confined::Not, false, Severity::Warning, "no Landlock"),
        ] {
            let found = assess(Confinement { landlock, landlock_abi: None, syscalls, namespaces: true });
            assert!(found.level == level && found.message.contains(part), "{found:?}");
            assert_eq!(found.advice.is_some(), level == Severity::Warning);
        }
    }
}
