//! A disk that a test can fill and empty.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Mounts a file system on the folder of its first argument until its standard input closes, however the test ends.
const KEEPER: &str = r#"
trap '' INT TERM HUP
mount -t tmpfs -o "size=$2m" tmpfs "$1" 2>/dev/null || exit 77
echo mounted
cat >/dev/null
umount -l "$1"
rmdir "$1" 2>/dev/null
"#;

/// An in-memory file system of a given size.
pub struct Disk {
    folder: tempfile::TempDir,
    keeper: Child,
}

impl Disk {
    /// `None` where mounting is not permitted.
    pub fn mount(mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder.path())
            .arg(mib.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let disk = Self { folder, keeper };
        (line == "mounted\n").then_some(disk)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Fills it completely.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            loop {
                match file.write(&vec![1; size]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    pub fn make_room(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
