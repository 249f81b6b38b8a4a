//! Disks without room: that of the store, and that of scratch.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::round::Round;
use super::told::Told;

const DISK_MIB: u64 = 16;
const PIPELINES: usize = 3;
/// What a run says that finds no room.
const FULL: &str = "free some space";
/// What is told where nobody lets us mount a disk.
pub const UNTRIED: &str = "not tried: no right to mount a disk";

/// Mounts a disk on the folder of its first argument until its standard input ends, however the test does.
const KEEPER: &str = r#"
trap '' INT TERM HUP
mount -t tmpfs -o "size=$2m" tmpfs "$1" 2>/dev/null || exit 77
echo mounted
cat >/dev/null
umount -l "$1"
rmdir "$1" 2>/dev/null
"#;

/// A disk of [`DISK_MIB`].
struct Disk {
    folder: tempfile::TempDir,
    keeper: Child,
}

impl Disk {
    /// `None` where mounting is not allowed.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder.path())
            .arg(DISK_MIB.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let disk = Self { folder, keeper };
        (line == "mounted\n").then_some(disk)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Leaves not a byte.
    fn fill(&self) {
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

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn untried() -> Told {
    Told { notes: [(UNTRIED.to_owned(), 1)].into(), ..Told::default() }
}

pub fn store_full(seed: u64, much: u64) -> Told {
    let Some(disk) = Disk::mount() else { return untried() };
    let mut round = Round::on_folder(seed, Some(&disk.path().join("objects")));
    for n in 0..PIPELINES {
        round.pipeline();
        round.change(n);
    }
    for _ in 0..2 {
        round.worker(&[]);
    }
    filled(round, &disk, "the store's disk full", much)
}

pub fn scratch_full(seed: u64, much: u64) -> Told {
    let Some(disk) = Disk::mount() else { return untried() };
    let mut round = Round::new(seed, PIPELINES);
    let scratch = disk.path().join("scratch");
    for _ in 0..2 {
        round.worker(&[("SVC_SCRATCH_DIR", scratch.display().to_string())]);
    }
    filled(round, &disk, "scratch's disk full", much)
}

/// Jobs that find the disk full wait, and are done once there is room.
fn filled(mut round: Round, disk: &Disk, fault: &str, much: u64) -> Told {
    round.until("the first jobs to end", |round| round.is_idle());
    for _ in 0..much {
        for n in 0..PIPELINES {
            round.change(n);
        }
        disk.fill();
        round.count(fault, 1);
        let before = round.logged(FULL);
        for n in 0..PIPELINES {
            round.wish(n, true);
        }
        round.until("a run to find the disk full", |round| round.logged(FULL) > before);
        let pause = Duration::from_millis(round.dice.below(6_000));
        round.pass(pause);
        disk.make_room();
        round.enqueue();
        let pause = Duration::from_millis(round.dice.below(3_000));
        round.pass(pause);
    }
    let found = round.logged(FULL);
    round.note("runs and records without room", found as u64);
    round.check()
}
