//! What a child takes from itself before it does anything: privileges, files, sockets, system calls, signals, memory,
//! descriptors.
//!
//! Invariant: done on the first thread before any other exists, since threads inherit what was taken, and before
//! anything of a person is read.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities};
use rustix::time::{ClockId, clock_gettime};

use super::{ChildArgs, ChildError, syscalls};
use crate::sql::sandbox::task::{Confined, Confinement};

/// Address space beyond DuckDB's memory, in bytes: code, stacks, what allocators reserve and never touch.
const ADDRESS_SPACE_EXTRA_BYTES: u64 = 384 << 20;
/// Address space for each thread, in bytes: its stack and its heap's reservation.
const ADDRESS_SPACE_THREAD_BYTES: u64 = 72 << 20;
/// DuckDB's memory divided by this: what it uses without counting it.
const UNCOUNTED_SHARE: u64 = 4;
/// Open files: DuckDB holds one for each thread that reads, whatever number a table has.
const FILES_MAX: u64 = 512;
/// Processor time of a child, in s: where nothing else ended it.
const CPU_SECONDS_MAX: u64 = 3_600;
/// The newest rules that are known here.
const LANDLOCK: ABI = ABI::V7;

/// Where DuckDB looks for limits when it opens; it dies of finding them unreadable.
const CGROUPS: &[&str] = &["/proc/self/cgroup", "/sys/fs/cgroup"];

/// Confines this process to reading its working folder, if it has files at all, and the time-zone data. What is given besides must live until
/// DuckDB is open.
pub fn confine(args: &ChildArgs) -> Result<(Confinement, Vec<PathFd>), ChildError> {
    let fail = |what: &'static str| move |error: io::Error| ChildError::Confine { what, reason: error.to_string() };
    let namespaces = leave_namespaces();
    // In a namespace of its own it has every capability there; as root it has them everywhere.
    drop_capabilities().map_err(fail("capabilities"))?;
    // A change of credentials clears this wish, so that it comes after.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| fail("the parent's death")(e.into()))?;
    // Whoever's parent died before the wish was known has another one now.
    if getppid().map(|pid| pid.as_raw_pid().unsigned_abs()) != Some(args.parent) {
        return Err(ChildError::Confine { what: "the parent's death", reason: "it is dead".to_owned() });
    }
    // Words that nobody reads must not hold it up.
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
    // One that evaluates expressions works as long as its run takes, and bounds each of its tasks.
    if !args.expressions {
        limit(Resource::Cpu, CPU_SECONDS_MAX).map_err(fail("processor time"))?;
    }
    let folder = (!args.expressions).then_some(Path::new("."));
    let (landlock, landlock_abi, held) =
        landlock(folder, &args.zones).map_err(|reason| ChildError::Confine { what: "Landlock", reason })?;
    let syscalls = syscalls::give_up_others().is_ok();
    Ok((Confinement { landlock, landlock_abi, syscalls, namespaces }, held))
}

/// Leaves the namespaces of the service: no interface of a network, no shared memory or semaphores of others, and no right
/// over anything outside. False where the system lets no ordinary process do so.
#[expect(deprecated, reason = "safe here: no thread shares descriptors with this one, and none are unshared")]
pub fn leave_namespaces() -> bool {
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    rustix::thread::unshare(flags).is_ok()
}

fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let held = capabilities(None)?;
    // Where a unit has left none, it may refuse the call as well.
    if held.effective | held.permitted | held.inheritable == none {
        return Ok(());
    }
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Allows so much more processor time; the process is killed when it has used it.
pub fn allow_processor_time(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used = u64::try_from(used.tv_sec).unwrap_or_default() + 1;
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = Some(maximum.unwrap_or(u64::MAX).min(used.saturating_add(seconds)));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

/// Lowers a limit for good; one that is lower already stays.
fn limit(resource: Resource, max: u64) -> io::Result<()> {
    let hard = getrlimit(resource).maximum;
    let max = hard.map_or(max, |hard| hard.min(max));
    Ok(setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) })?)
}

/// How far the kernel could confine a process; confines none.
pub fn landlock_of_kernel() -> Confined {
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let all = strict()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)));
    let some = || strict().handle_access(AccessFs::from_all(ABI::V1));
    if all.and_then(Ruleset::create).is_ok() {
        Confined::Fully
    } else if some().and_then(Ruleset::create).is_ok() {
        Confined::Partly
    } else {
        Confined::Not
    }
}

fn landlock(folder: Option<&Path>, zones: &Path) -> Result<(Confined, Option<u8>, Vec<PathFd>), String> {
    let folder = folder.map(PathFd::new).transpose().map_err(|error| error.to_string())?;
    let zones = PathFd::new(zones).map_err(|error| error.to_string())?;
    // The kernel's own files have no lasting identity, so that those that are let through are held open.
    let cgroups: Vec<PathFd> = CGROUPS.iter().filter_map(|path| PathFd::new(path).ok()).collect();
    let rules = || -> Result<RestrictionStatus, landlock::RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?;
        if let Some(folder) = &folder {
            rules = rules.add_rule(PathBeneath::new(folder, AccessFs::ReadFile | AccessFs::ReadDir))?;
        }
        for path in cgroups.iter().chain([&zones]) {
            rules = rules.add_rule(PathBeneath::new(path, AccessFs::ReadFile))?;
        }
        rules.restrict_self()
    };
    let status = rules().map_err(|error| error.to_string())?;
    let confined = match status.ruleset {
        RulesetStatus::FullyEnforced => Confined::Fully,
        RulesetStatus::PartiallyEnforced => Confined::Partly,
        RulesetStatus::NotEnforced => Confined::Not,
    };
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => u8::try_from(effective_abi as i32).ok(),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    };
    Ok((confined, abi, cgroups))
}
