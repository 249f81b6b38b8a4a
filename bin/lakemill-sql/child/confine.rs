//! Confines a child before it does anything else: gives up privileges, files, sockets, system calls, signals, memory
//! and descriptors.
//!
//! Invariant: runs on the first thread before any other exists, since threads inherit the restrictions, and before the
//! child reads a user's text.

use std::io;
use std::path::{Path, PathBuf};

use lakemill::sql::sandbox::landlock::restrict;
use lakemill::sql::sandbox::task::Confinement;
use landlock::PathFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities};
use rustix::time::{ClockId, clock_gettime};

use super::failure::ChildError;
use super::syscalls;

/// Address space beyond DuckDB's memory, in bytes: code, stacks, and memory that allocators reserve and never touch.
const ADDRESS_SPACE_EXTRA_BYTES: u64 = 384 << 20;
/// Address space for each thread, in bytes: its stack and its heap's reservation.
const ADDRESS_SPACE_THREAD_BYTES: u64 = 72 << 20;
/// DuckDB uses this fraction (1/n) of its memory limit in addition, without counting it.
const UNCOUNTED_SHARE: u64 = 4;
/// Open files: DuckDB opens one for each reading thread, regardless of the number of a table's files.
const FILES_MAX: u64 = 512;
/// Processor time of a child, in s; the last resort.
const CPU_SECONDS_MAX: u64 = 3_600;

/// How a child is started.
#[derive(Debug, Clone)]
pub struct ChildArgs {
    /// Memory limit of DuckDB, in bytes.
    pub memory_bytes: u64,
    pub threads: usize,
    /// The process whose death ends the child.
    pub parent: u32,
    /// The folder of the time-zone data.
    pub zones: PathBuf,
    /// Whether it evaluates expressions; otherwise it runs statements over the files of its folder.
    pub expressions: bool,
}

/// Confines this process to reading its working folder (unless it evaluates expressions) and the time-zone data. The
/// open files must live until DuckDB is open.
pub fn confine(args: &ChildArgs) -> Result<(Confinement, Vec<PathFd>), ChildError> {
    let fail = |what: &'static str| move |error: io::Error| ChildError::Confine { what, reason: error.to_string() };
    // A new namespace would keep its capabilities where the system refuses to drop them, as a systemd unit may.
    let namespaces = may_set_capabilities() && leave_namespaces();
    // A new namespace gives every capability within it; root has them everywhere.
    drop_capabilities().map_err(fail("capabilities"))?;
    // A change of credentials clears this setting, so it comes after.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| fail("the parent's death")(e.into()))?;
    // If the parent died before the setting took effect, the child has another parent now.
    if getppid().map(|pid| pid.as_raw_pid().unsigned_abs()) != Some(args.parent) {
        return Err(ChildError::Confine { what: "the parent's death", reason: "it is dead".to_owned() });
    }
    // A full stderr that the parent doesn't read must not block.
    let stderr = io::stderr();
    let flags = fcntl_getfl(&stderr).map_err(|e| fail("stderr")(e.into()))?;
    fcntl_setfl(&stderr, flags | OFlags::NONBLOCK).map_err(|e| fail("stderr")(e.into()))?;
    let threads = u64::try_from(args.threads).unwrap_or(u64::MAX);
    let address_space = args
        .memory_bytes
        .saturating_add(args.memory_bytes / UNCOUNTED_SHARE)
        .saturating_add(ADDRESS_SPACE_EXTRA_BYTES)
        .saturating_add(ADDRESS_SPACE_THREAD_BYTES.saturating_mul(threads));
    for (what, resource, max) in [
        ("address space", Resource::As, address_space),
        ("core files", Resource::Core, 0),
        ("open files", Resource::Nofile, FILES_MAX),
        ("written files", Resource::Fsize, 0),
    ] {
        limit(resource, max).map_err(fail(what))?;
    }
    // A child that evaluates expressions works as long as its run takes, and bounds each task.
    if !args.expressions {
        limit(Resource::Cpu, CPU_SECONDS_MAX).map_err(fail("processor time"))?;
    }
    let folder = (!args.expressions).then_some(Path::new("."));
    let (landlock, landlock_abi, open) =
        restrict(folder, &args.zones).map_err(|reason| ChildError::Confine { what: "Landlock", reason })?;
    let syscalls = syscalls::filter().is_ok();
    Ok((Confinement { landlock, landlock_abi, syscalls, namespaces }, open))
}

/// Leaves the service's namespaces: afterwards no network interface, no shared memory or semaphores of other processes,
/// and no privilege outside. False where the system forbids it to unprivileged processes.
#[expect(deprecated, reason = "safe here: no thread shares descriptors with this one, and none are unshared")]
pub fn leave_namespaces() -> bool {
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    rustix::thread::unshare(flags).is_ok()
}

fn may_set_capabilities() -> bool {
    capabilities(None).is_ok_and(|held| set_capabilities(None, held).is_ok())
}

fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let held = capabilities(None)?;
    // A systemd unit without capabilities may refuse the call as well.
    if held.effective | held.permitted | held.inheritable == none {
        return Ok(());
    }
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Allows `seconds` more of processor time; the kernel kills the process when they are used.
pub fn allow_processor_time(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = u64::try_from(used.tv_sec).unwrap_or_default() + 1;
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = Some(maximum.unwrap_or(u64::MAX).min(used.saturating_add(seconds)));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

/// Lowers a limit irrevocably; one that is lower already stays.
fn limit(resource: Resource, max: u64) -> io::Result<()> {
    let hard = getrlimit(resource).maximum;
    let max = hard.map_or(max, |hard| hard.min(max));
    Ok(setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) })?)
}
