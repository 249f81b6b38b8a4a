//! Landlock: drops a process's access to files, sockets and signals that it doesn't need.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::task::Confined;

/// The newest version of the rules that this program knows.
const LANDLOCK: ABI = ABI::V7;

/// Where DuckDB looks for limits when it opens; it aborts if they are unreadable.
const CGROUPS: &[&str] = &["/proc/self/cgroup", "/sys/fs/cgroup"];

/// How far the kernel can confine a process. Doesn't confine this process.
pub fn supported() -> Confined {
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

/// A confinement in force: how far, the version of the rules, and files that must stay open until DuckDB is open.
pub type Restriction = (Confined, Option<u8>, Vec<PathFd>);

/// Confines this process to reading `folder`, if it has one, and the files of `zones`.
///
/// # Errors
/// A folder can't be opened; the kernel refuses the rules.
pub fn restrict(folder: Option<&Path>, zones: &Path) -> Result<Restriction, String> {
    let folder = folder.map(PathFd::new).transpose().map_err(|error| error.to_string())?;
    let zones = PathFd::new(zones).map_err(|error| error.to_string())?;
    // The kernel's own files have no lasting identity: the rules hold for them only while they are open.
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
