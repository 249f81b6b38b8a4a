//! The file: made for its owner alone, on a disk of this machine.

use parking_lot::Mutex;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::error::{Fault, Outcome};

/// Which file a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// `None` if there is no file.
pub(super) fn id(path: &Path) -> Option<FileId> {
    let meta = std::fs::metadata(path).ok()?;
    Some(FileId { device: meta.dev(), inode: meta.ino() })
}

/// Makes the file and its folder where they are missing, and looks at where they lie.
pub(super) fn prepare(path: &Path) -> Outcome<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if let Some(kind) = network_kind(folder)? {
        return Err(Fault::Refused(format!(
            "`{}` lies on a network file system ({kind}), whose locks can't be relied on: put the file on a disk of \
             this machine, or use Redis where several machines share the queue",
            path.display()
        )));
    }
    create(path)
}

fn create(path: &Path) -> Outcome<()> {
    // Closing a file takes the process's locks on it away. So it is opened here only if it is new, and no thread of
    // ours can have opened it through SQLite meanwhile.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    if path.exists() {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

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
    // A magic number has 32 bits; the field's width and sign differ between machines.
    Ok(found as u32)
}

/// The type of the mount that holds the folder, e.g. `fuse.sshfs`.
fn fuse_kind(folder: &Path) -> Option<String> {
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
        assert_eq!(network_kind(&std::env::temp_dir()).unwrap(), None);
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
