//! The database file: private to its owner, on a local disk.
//!
//! Locks and shared memory are reliable only on local file systems. 9p and virtiofs are accepted, since sandboxes and
//! virtual machines show a local disk that way; they, and unknown kinds of FUSE, would be trusted too far if several
//! machines shared them.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use parking_lot::Mutex;

use super::error::{StepError, StepResult};

/// Identifies the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// `None` if the file doesn't exist.
pub(super) fn id(path: &Path) -> Option<FileId> {
    let meta = std::fs::metadata(path).ok()?;
    Some(FileId { device: meta.dev(), inode: meta.ino() })
}

/// Creates the file and its folder if missing; rejects network file systems.
pub(super) fn prepare(path: &Path) -> StepResult<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if let Some(kind) = network_kind(folder)? {
        return Err(StepError::Refused(format!(
            "`{}` is on a network file system ({kind}), whose locks are unreliable: put the file on a disk of \
             this machine, or use Redis where several machines share the queue",
            path.display()
        )));
    }
    create(path)
}

fn create(path: &Path) -> StepResult<()> {
    // Closing a file releases the process's locks on it. So it is opened here only if it is new, when no thread can have
    // opened it through SQLite.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock();
    if path.exists() {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Network file systems by magic number (`f_type` of `statfs`).
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

/// FUSE types that store files on a local disk.
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

/// Limit of the list of mounts, in bytes.
const MOUNTS_BYTES_MAX: u64 = 4 << 20;

/// The name of the network file system of `folder`; `None` if it is local.
fn network_kind(folder: &Path) -> io::Result<Option<String>> {
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
    // A magic number has 32 bits; the field's width and sign differ between architectures.
    Ok(found as u32)
}

/// The type of the folder's mount, e.g. `fuse.sshfs`.
fn fuse_kind(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mut text = String::new();
    std::fs::File::open("/proc/self/mountinfo").ok()?.take(MOUNTS_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (_, kind) = mounts(&text)
        .filter(|(point, _)| folder.starts_with(point))
        // Of two mounts at the same path, the later one hides the earlier one.
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
    fn temp_dir_is_local() {
        assert_eq!(network_kind(&std::env::temp_dir()).unwrap(), None);
    }

    #[test]
    fn mount_points_may_contain_spaces() {
        let text =
            "22 1 0:21 / / rw shared:1 - ext4 /dev/a rw\n36 22 0:32 / /mnt/my\\040files rw - fuse.sshfs h:/ rw\n";
        let found: Vec<_> = mounts(text).collect();
        assert_eq!(found, [("/".to_owned(), "ext4"), ("/mnt/my files".to_owned(), "fuse.sshfs")]);
    }

    #[test]
    fn remote_fuse_types_are_not_local() {
        for remote in ["fuse", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.gcsfuse", "fuse.davfs"]
        {
            assert!(!LOCAL_FUSE.contains(&remote), "{remote}");
        }
    }
}
