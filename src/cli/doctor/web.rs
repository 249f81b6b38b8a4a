//! The web service of this machine: its port, its cache, and what confines its queries.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use indicatif::HumanBytes;

use super::check::CheckResult;
use super::machine::existing;
use super::surroundings::{Surroundings, WebService, web_service_at};
use crate::cli::expressions::processes;
use crate::cli::probe::{WEB_PORT, own_address};
use crate::config::{WebConfig, WithWarnings};
use crate::sql::sandbox::{Confined, Confinement};
use crate::system::free_bytes;

/// Of the cache's folder.
const FOLDERS_DEEP_MAX: u32 = 4;
const NO_WEB: &str = "this is not a complete environment of `lakemill web`";

fn config(around: &Surroundings) -> Option<&WebConfig> {
    around.web.as_ref().ok().map(|WithWarnings { config, .. }| config)
}

pub(super) fn answers(around: &Surroundings) -> Vec<CheckResult> {
    let Some(config) = config(around) else { return vec![CheckResult::skipped(NO_WEB)] };
    let (bind, port) = (config.server.bind, config.server.port);
    if port == 0 {
        return vec![CheckResult::skipped("PORT is 0: the web service takes any free one, which its log tells")];
    }
    let at = own_address(bind, port);
    if around.shares_port() && web_service_at(at) == WebService::None {
        return vec![elsewhere(port, own_address(bind, WEB_PORT))];
    }
    vec![match TcpListener::bind((bind, port)) {
        Ok(_) => CheckResult::ok(format!("none runs here; port {port} is free for one")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => found(at).unwrap_or_else(|| {
            CheckResult::problem(format!("port {port} is taken by something else"), "end it, or set PORT to another")
        }),
        Err(error) => {
            CheckResult::problem(format!("listening at `{bind}` port {port}: {error}"), "correct PORT and SVC_BIND")
        }
    }]
}

/// Where the shared PORT is the worker's, or nobody's.
fn elsewhere(port: u16, at: SocketAddr) -> CheckResult {
    found(at).unwrap_or_else(|| {
        CheckResult::skipped(format!(
            "PORT {port} is looked at as the worker's, and no web service answers at {at}: `PORT=… lakemill doctor` \
             with the web service's port looks at it"
        ))
    })
}

/// The finding about the web service at `at`; `None` if there is none.
fn found(at: SocketAddr) -> Option<CheckResult> {
    let port = at.port();
    match web_service_at(at) {
        WebService::Healthy => Some(CheckResult::ok(format!("one answers at port {port}"))),
        WebService::WithoutKv => Some(CheckResult::problem(
            format!("the one at port {port} can't reach its key-value store"),
            "see the check of the key-value store, and the web service's log",
        )),
        WebService::None => None,
    }
}

pub(super) fn cache(around: &Surroundings) -> Vec<CheckResult> {
    let Some(config) = config(around) else { return vec![CheckResult::skipped(NO_WEB)] };
    let folder = &config.cache_dir;
    let shown = folder.display();
    let correct = "let the service's user write there, or name another folder in SVC_CACHE_DIR";
    let there = match existing(folder) {
        Some(there) if there.is_dir() => there,
        Some(file) => {
            return vec![CheckResult::problem(format!("`{shown}`: `{}` is not a folder", file.display()), correct)];
        }
        None => return vec![CheckResult::problem(format!("`{shown}` is not there"), correct)],
    };
    // An unnamed file, so that nothing is left.
    if let Err(error) = tempfile::tempfile_in(&there) {
        return vec![CheckResult::problem(format!("`{}`: {error}", there.display()), correct)];
    }
    let held = held(folder, FOLDERS_DEEP_MAX);
    let wants = config.cache_bytes.saturating_sub(held);
    match free_bytes(&there) {
        Some(free) if free < wants => {
            let (free, wants) = (HumanBytes(free), HumanBytes(wants));
            vec![CheckResult::warning(
                format!("`{shown}` has {free} left, and the cache may grow by {wants}"),
                "lower SVC_CACHE_BYTES, free some space, or name a folder on a larger disk in SVC_CACHE_DIR",
            )]
        }
        Some(_) | None => vec![CheckResult::ok(format!("`{shown}` can be written by this user, and has room"))],
    }
}

/// Bytes of the files below a folder.
fn held(folder: &Path, deep: u32) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() && deep > 0 => held(&entry.path(), deep - 1),
        Ok(found) if found.is_file() => found.len(),
        Ok(_) | Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

/// Starts a process for SQL, and reports its confinement.
pub(super) fn sandbox(around: &Surroundings) -> Vec<CheckResult> {
    if config(around).is_none() {
        return vec![CheckResult::skipped(NO_WEB)];
    }
    let child = processes(1).and_then(|processes| processes.child().map_err(|error| error.to_string()));
    let confinement = child.map(|child| child.confinement());
    vec![match confinement {
        Ok(Some(confinement)) => judge(confinement),
        Ok(None) => CheckResult::problem("a process for SQL doesn't tell what confines it", START),
        Err(error) => CheckResult::problem(error, START),
    }]
}

/// What to do where no process can be started.
const START: &str = "see that this program may start itself, and that memory and processes are left";

fn judge(confinement: Confinement) -> CheckResult {
    let namespaces = if confinement.namespaces { ", in namespaces of their own" } else { "" };
    match confinement.landlock {
        Confined::Fully | Confined::Partly if !confinement.syscalls => CheckResult::warning(
            "the kernel takes no filter of system calls: the processes of SQL keep all of them",
            "use a kernel with seccomp filters, and a container that lets processes set one",
        ),
        Confined::Fully => {
            CheckResult::ok(format!("Landlock and a filter of system calls confine the processes of SQL{namespaces}"))
        }
        Confined::Partly => CheckResult::warning(
            "the kernel knows only a part of Landlock's rules: the processes of SQL are confined by these, by a filter of \
             system calls and by DuckDB's settings",
            "a newer kernel (6.12 or later) knows all of them",
        ),
        Confined::Not => CheckResult::warning(
            "the kernel has no Landlock: nothing but DuckDB's settings keeps the processes of SQL from files",
            "use a kernel of 5.13 or later with `landlock` in its list of security modules (boot parameter `lsm=`)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Severity;
    use super::*;

    #[test]
    fn a_kernel_without_landlock_or_filters_is_warned_of() {
        for (landlock, syscalls, level, part) in [
            (Confined::Fully, true, Severity::Ok, "confine"),
            (Confined::Fully, false, Severity::Warning, "no filter"),
            (Confined::Partly, true, Severity::Warning, "only a part"),
            (Confined::Partly, false, Severity::Warning, "no filter"),
            (Confined::Not, true, Severity::Warning, "no Landlock"),
            (Confined::Not, false, Severity::Warning, "no Landlock"),
        ] {
            let found = judge(Confinement { landlock, landlock_abi: None, syscalls, namespaces: true });
            assert!(found.level == level && found.message.contains(part), "{found:?}");
            assert_eq!(found.advice.is_some(), level == Severity::Warning);
        }
    }
}
