//! Checks this machine: scratch, memory, file descriptors, and access to the data folder.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use indicatif::HumanBytes;
use rustix::process::{Resource, getrlimit};

use super::cgroup;
use super::check::CheckResult;
use super::context::DoctorContext;
use super::worker;
use crate::config::{StoreEndpoint, WithWarnings, WorkerConfig};
use crate::system::{free_bytes, total_memory};

/// Memory of a worker outside of its runs, and of the expression process of each processor, as in docs/operations.md.
const WORKER_BYTES: u64 = 256 << 20;
const PROCESSOR_BYTES: u64 = 64 << 20;
/// Runs that may use more than this fraction of the memory leave too little to other programs.
const MEMORY_PERCENT_MAX: u64 = 80;
/// A service may hold 256 connections, and needs descriptors for files, stores and processes.
const DESCRIPTORS_MIN: u64 = 1_024;
/// `f_type` of tmpfs.
const TMPFS: u64 = 0x0102_1994;

/// Maximum memory of all runs of a worker.
fn runs_bytes(config: &WorkerConfig) -> u64 {
    config.run_memory_bytes.saturating_mul(config.concurrency as u64)
}

pub(super) fn scratch(context: &DoctorContext) -> Vec<CheckResult> {
    let config = match worker::config(context) {
        Ok(config) => config,
        Err(skipped) => return vec![skipped],
    };
    let folder = &config.scratch_dir;
    let shown = folder.display();
    let correct = "give the service's user write access, or set another folder in SVC_SCRATCH_DIR";
    let there = match existing(folder) {
        Some(there) if there.is_dir() => there,
        Some(file) => {
            return vec![CheckResult::problem(format!("`{shown}`: `{}` is not a folder", file.display()), correct)];
        }
        None => return vec![CheckResult::problem(format!("`{shown}` does not exist"), correct)],
    };
    let mut findings = Vec::new();
    // An unnamed file, which leaves nothing behind.
    findings.push(match tempfile::tempfile_in(&there) {
        Ok(_) if there == *folder => CheckResult::ok(format!("`{shown}` is writable")),
        Ok(_) => CheckResult::ok(format!("`{shown}` does not exist yet, and can be created")),
        Err(error) => CheckResult::problem(format!("`{}`: {error}", there.display()), correct),
    });
    if let Some(free) = free_bytes(&there)
        && free < runs_bytes(config)
    {
        let (free, need) = (HumanBytes(free), HumanBytes(runs_bytes(config)));
        findings.push(CheckResult::warning(
            format!("`{shown}` has {free} free; runs spill data there, often more than {need}"),
            "free some space, or set a folder on a larger disk in SVC_SCRATCH_DIR",
        ));
    }
    if rustix::fs::statfs(&there).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS)) {
        findings.push(CheckResult::warning(
            format!("`{shown}` is in memory (tmpfs): data that runs spill there uses memory, too"),
            "set a folder on a disk in SVC_SCRATCH_DIR",
        ));
    }
    findings
}

/// The folder itself, or its nearest existing parent.
pub(super) fn existing(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|path| path.exists()).map(Path::to_owned)
}

pub(super) fn descriptors(_: &DoctorContext) -> Vec<CheckResult> {
    vec![assess_descriptors(getrlimit(Resource::Nofile).current)]
}

/// `None`: unlimited.
fn assess_descriptors(limit: Option<u64>) -> CheckResult {
    match limit {
        Some(limit) if limit < DESCRIPTORS_MIN => CheckResult::warning(
            format!("this process may open {limit} file descriptors, expected at least {DESCRIPTORS_MIN}"),
            "raise the limit: `LimitNOFILE=65536` in the systemd unit, or `ulimit -n` in the shell that starts it",
        ),
        Some(limit) => CheckResult::ok(format!("limit: {limit}")),
        None => CheckResult::ok("unlimited"),
    }
}

/// For objects in folders: whether other users than the service's user and group have access.
pub(super) fn data_folder(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(WithWarnings { config, .. }) = &context.objects else {
        return vec![CheckResult::skipped("the environment doesn't set the object store")];
    };
    let StoreEndpoint::Folder(root) = &config.endpoint else {
        return vec![CheckResult::skipped("the object store is not a folder of this machine")];
    };
    let shown = root.display();
    let mode = |path: &Path| std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
    let Ok(own) = mode(root) else { return vec![CheckResult::skipped(format!("`{shown}` does not exist yet"))] };
    let reachable = root.ancestors().skip(1).all(|folder| mode(folder).is_ok_and(|mode| mode & 0o001 != 0));
    let advice = format!("chmod o-rwx {shown}");
    vec![match own & 0o007 {
        0 => CheckResult::ok(format!("only its user and group can access `{shown}`")),
        _ if !reachable => CheckResult::ok(format!("other users can't access `{shown}`")),
        others if others & 0o002 != 0 => {
            CheckResult::problem(format!("`{shown}` has the mode {own:o}: every user may change its objects"), advice)
        }
        _ => CheckResult::warning(
            format!("`{shown}` has the mode {own:o}: every user of this machine may read it"),
            advice,
        ),
    }]
}

pub(super) fn memory(context: &DoctorContext) -> Vec<CheckResult> {
    let config = match worker::config(context) {
        Ok(config) => config,
        Err(skipped) => return vec![skipped],
    };
    let Some(has) = memory_bytes() else { return vec![CheckResult::skipped("the memory of this machine is unknown")] };
    let text = format!(
        "{} (SVC_RUN_MEMORY_BYTES) × {} (WORKER_CONCURRENCY)",
        HumanBytes(config.run_memory_bytes),
        config.concurrency
    );
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processes = PROCESSOR_BYTES.saturating_mul(processors as u64);
    vec![assess(runs_bytes(config).saturating_add(processes), has, &text)]
}

fn assess(runs: u64, has: u64, text: &str) -> CheckResult {
    let found = format!("{text} of the {} that this process may use", HumanBytes(has));
    let advice = "lower one of them: a worker that uses too much memory is killed, and its jobs start again";
    match runs.saturating_add(WORKER_BYTES) {
        need if need > has => CheckResult::problem(found, advice),
        need if need / 100 > has / 10_000 * MEMORY_PERCENT_MAX => CheckResult::warning(found, advice),
        _ => CheckResult::ok(found),
    }
}

/// The memory of the machine, or the limit of the process's control group if that is smaller.
fn memory_bytes() -> Option<u64> {
    let machine = total_memory()?;
    Some(cgroup::memory_limit(Path::new("/")).map_or(machine, |limit| limit.min(machine)))
}

#[cfg(test)]
mod tests {
    use super::super::check::Severity;
    use super::*;

    #[test]
    fn memory_check_depends_on_the_rest_of_the_machine() {
        const GIB: u64 = 1 << 30;
        for (runs, has, level) in [
            (GIB / 2, 4 * GIB, Severity::Ok),
            (5 * GIB / 2, 4 * GIB, Severity::Ok),
            (7 * GIB / 2, 4 * GIB, Severity::Warning),
            (4 * GIB, 4 * GIB, Severity::Problem),
            (u64::MAX, 4 * GIB, Severity::Problem),
        ] {
            assert_eq!(assess(runs, has, "").level, level, "{runs} of {has}");
        }
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn nearest_existing_folder_is_examined() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(existing(&home.path().join("a/b/c")).as_deref(), Some(home.path()));
        assert_eq!(existing(home.path()).as_deref(), Some(home.path()));
    }
}
