//! The memory limit that control groups set for this process, of version 1, version 2, or both.
//!
//! Limits nest: the smallest one from the process's own group up to the mounted root applies.

use std::path::{Path, PathBuf};

/// A line of `/proc/self/mountinfo` that mounts a cgroup hierarchy.
struct Mount {
    /// The mounted group: `/`, or a container's.
    group: PathBuf,
    at: PathBuf,
    is_v2: bool,
}

/// In bytes. `root` is the root of the file system. `None` if no group limits the memory, or none can be read.
pub(super) fn memory_limit(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(mount).collect();
    let limits = groups.lines().filter_map(|line| {
        // `0::/path` of version 2, `4:cpu,memory:/path` of version 1.
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|name| name == "memory") {
            return None;
        }
        mounts.iter().filter(|mount| mount.is_v2 == is_v2).filter_map(|mount| least(root, mount, path)).min()
    });
    limits.min()
}

/// `36 25 0:32 /group /mount/point rw - cgroup cgroup rw,memory`. `None` for other file systems and controllers.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let is_v2 = match after.next()? {
        "cgroup2" => true,
        "cgroup" if after.nth(1)?.split(',').any(|option| option == "memory") => false,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3).map(unescaped);
    Some(Mount { group: before.next()?.into(), at: before.next()?.into(), is_v2 })
}

/// The kernel writes blanks, line ends and backslashes in octal.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (escape, character)| path.replace(escape, character))
}

/// The smallest limit from the group `path` up to the mounted group.
fn least(root: &Path, mount: &Mount, path: &str) -> Option<u64> {
    let name = if mount.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let top = root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
    // In a container's own namespace the paths of mount and process can differ; then the mounted group is the
    // process's.
    let inside = Path::new(path).strip_prefix(&mount.group).unwrap_or(Path::new(""));
    let inside = if inside.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { inside };
    // Unlimited is `max` in version 2, and a huge number in version 1.
    let limit = |folder: &Path| std::fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    top.join(inside).ancestors().take_while(|folder| folder.starts_with(&top)).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "33 25 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      34 25 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
    const UNLIMITED_V1: &str = "9223372036854771712";

    /// The limit in a file system with these files.
    fn limit(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        let own = [("proc/self/cgroup", groups), ("proc/self/mountinfo", mounts)];
        for (name, text) in own.iter().chain(files) {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory_limit(root.path())
    }

    #[test]
    fn limit_of_version_1_is_read() {
        let groups = "9:cpu,cpuacct:/a\n8:memory:/system.slice/lakemill.service\n1:name=systemd:/x\n";
        let own = "sys/fs/cgroup/memory/system.slice/lakemill.service/memory.limit_in_bytes";
        let slice = "sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes";
        let top = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(limit(groups, V1, &[(own, "1073741824\n"), (top, UNLIMITED_V1)]), Some(1 << 30));
        assert_eq!(limit(groups, V1, &[(own, UNLIMITED_V1), (slice, "536870912\n")]), Some(512 << 20));
        assert_eq!(limit(groups, V1, &[(own, "536870912"), (slice, "1073741824")]), Some(512 << 20));
        assert_eq!(limit("9:cpu,cpuacct:/a\n", V1, &[(own, "1")]), None);
    }

    #[test]
    fn smallest_limit_of_nested_version_2_groups_applies() {
        let groups = "0::/system.slice/lakemill.service\n";
        let own = "sys/fs/cgroup/system.slice/lakemill.service/memory.max";
        let slice = "sys/fs/cgroup/system.slice/memory.max";
        assert_eq!(limit(groups, V2, &[(own, "max\n"), (slice, "2147483648\n")]), Some(2 << 30));
        assert_eq!(limit(groups, V2, &[(own, "1073741824\n"), (slice, "2147483648\n")]), Some(1 << 30));
        assert_eq!(limit(groups, V2, &[(own, "max\n")]), None);
        assert_eq!(limit("", "", &[]), None);
    }

    #[test]
    fn both_versions_are_read() {
        let groups = "4:memory:/a\n0::/a\n";
        let mounts = format!("{V1}35 25 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        let v1 = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824");
        assert_eq!(limit(groups, &mounts, &[v1]), Some(1 << 30));
        let v2 = ("sys/fs/cgroup/unified/a/memory.max", "1048576");
        assert_eq!(limit(groups, &mounts, &[v1, v2]), Some(1 << 20));
    }

    #[test]
    fn container_group_is_its_mount_root() {
        let mounts = "33 25 0:29 /docker/7f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let top = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824");
        let inner = ("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "1048576");
        assert_eq!(limit("8:memory:/docker/7f\n", mounts, &[top, inner]), Some(1 << 30));
        assert_eq!(limit("8:memory:/docker/7f/inner\n", mounts, &[top, inner]), Some(1 << 20));
        // With and without a private cgroup namespace.
        assert_eq!(limit("8:memory:/\n", mounts, &[top, inner]), Some(1 << 30));
        assert_eq!(limit("8:memory:/../other\n", mounts, &[top, inner]), Some(1 << 30));
        let odd = "33 25 0:29 / /sys/fs/cgroup/a\\040b rw - cgroup2 cgroup2 rw\n";
        assert_eq!(limit("0::/\n", odd, &[("sys/fs/cgroup/a b/memory.max", "7")]), Some(7));
    }
}
