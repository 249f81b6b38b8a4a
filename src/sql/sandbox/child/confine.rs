//! What a child takes from itself before it does anything: files, sockets, signals, memory, descriptors.
//!
//! Invariant: done on the first thread before any other exists, since threads inherit what was taken, and before
//! anything of a person is read.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};

use super::{ChildArgs, ChildError};
use crate::sql::sandbox::task::Confined;

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

/// Confines this process to reading its working folder. What is given besides must live until DuckDB is open.
pub fn confine(args: &ChildArgs) -> Result<(Confined, Vec<PathFd>), ChildError> {
    let fail = |what: &'static str| move |error: io::Error| ChildError::Confine { what, reason: error.to_string() };
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
        ("processor time", Resource::Cpu, CPU_SECONDS_MAX),
    ] {
        limit(resource, max).map_err(fail(what))?;
    }
    landlock(Path::new(".")).map_err(|reason| ChildError::Confine { what: "Landlock", reason })
}

/// Lowers a limit for good; one that is lower already stays.
fn limit(resource: Resource, max: u64) -> io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
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

fn landlock(folder: &Path) -> Result<(Confined, Vec<PathFd>), String> {
    let folder = PathFd::new(folder).map_err(|error| error.to_string())?;
    // The kernel's own files have no lasting identity, so that those that are let through are held open.
    let cgroups: Vec<PathFd> = CGROUPS.iter().filter_map(|path| PathFd::new(path).ok()).collect();
    let rules = || -> Result<RulesetStatus, landlock::RulesetError> {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?;
        let mut rules = rules.add_rule(PathBeneath::new(&folder, AccessFs::ReadFile | AccessFs::ReadDir))?;
        for cgroup in &cgroups {
            rules = rules.add_rule(PathBeneath::new(cgroup, AccessFs::ReadFile))?;
        }
        Ok(rules.restrict_self()?.ruleset)
    };
    let confined = match rules().map_err(|error| error.to_string())? {
        RulesetStatus::FullyEnforced => Confined::Fully,
        RulesetStatus::PartiallyEnforced => Confined::Partly,
        RulesetStatus::NotEnforced => Confined::Not,
    };
    Ok((confined, cgroups))
}
