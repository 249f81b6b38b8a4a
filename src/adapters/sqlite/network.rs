//! Tells file systems whose locks and shared memory hold among the processes of one machine from those of a network.
//!
//! 9p and virtiofs are let through: sandboxes and virtual machines show a local disk that way. They, and kinds of FUSE
//! that we don't know, would be trusted too far if several machines shared them.

use std::io;
use std::path::Path;

/// Magic numbers of `statfs` (f_type), each with its name.
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x564c, "ncpfs"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x1983_0326, "beegfs"),
    (0x2003_0528, "orangefs"),
    (0x786f_4256, "vboxsf"),
];

const FUSE: u32 = 0x6573_5546;

/// Kinds of FUSE that keep their files on a disk of this machine.
const LOCAL_FUSE: &[&str] = &[
    "fuseblk",
    "virtiofs",
    "fuse.fuse-overlayfs",
    "fuse.overlayfs",
    "fuse.mergerfs",
    "fuse.bindfs",
    "fuse.gocryptfs",
    "fuse.encfs",
    "fuse.ext2",
    "fuse.ext4",
    "fuse.ntfs",
    "fuse.ntfs-3g",
    "fuse.exfat",
    "fuse.unionfs",
];

/// Longest list of mounts that is read, in bytes.
const MOUNTS_BYTES_MAX: u64 = 4 << 20;

/// The name of the network file system on which `folder` lies; `None` if it is a local one.
pub(super) fn kind(folder: &Path) -> io::Result<Option<String>> {
    let magic = magic(folder)?;
    if let Some((_, name)) = REMOTE.iter().find(|(number, _)| *number == magic) {
        return Ok(Some((*name).to_owned()));
    }
    if magic != FUSE {
        return Ok(None);
    }
    let kind = fuse_kind(folder).unwrap_or_else(|| "fuse".to_owned());
    Ok((!LOCAL_FUSE.contains(&kind.as_str())).then_some(kind))
}

fn magic(folder: &Path) -> io::Result<u32> {
    let found = rustix::fs::statfs(folder)?.f_type;
    // A magic number has 32 bits; the field's width and sign differ between machines.
    Ok(found as u32)
}

/// The type of the mount that holds the folder, e.g. `fuse.sshfs`.
fn fuse_kind(folder: &Path) -> Option<String> {
    use io::Read as _;
    let folder = folder.canonicalize().ok()?;
    let mut text = String::new();
    std::fs::File::open("/proc/self/mountinfo").ok()?.take(MOUNTS_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (_, kind) = mounts(&text)
        .filter(|(point, _)| folder.starts_with(point))
        // Of the same length, the later one covers the earlier.
        .max_by_key(|(point, _)| point.len())?;
    Some(kind.to_owned())
}

/// Mount points and types of `/proc/self/mountinfo`.
fn mounts(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
        Some((point, after.split(' ').next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_tests_is_local() {
        assert_eq!(kind(&std::env::temp_dir()).unwrap(), None);
    }

    #[test]
    fn mounts_are_read_with_blanks_in_their_names() {
        let text =
            "22 1 0:21 / / rw shared:1 - ext4 /dev/a rw\n36 22 0:32 / /mnt/my\\040files rw - fuse.sshfs h:/ rw\n";
        let found: Vec<_> = mounts(text).collect();
        assert_eq!(found, [("/".to_owned(), "ext4"), ("/mnt/my files".to_owned(), "fuse.sshfs")]);
    }

    #[test]
    fn remote_kinds_of_fuse_are_not_among_the_local_ones() {
        for remote in ["fuse", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.gcsfuse", "fuse.davfs"]
        {
            assert!(!LOCAL_FUSE.contains(&remote), "{remote}");
        }
    }
}
