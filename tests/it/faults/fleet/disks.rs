//! Full disks: the store's, and the scratch folder's.

use std::time::Duration;

use super::report::RoundReport;
use super::round::Round;
use crate::support::disk::Disk;

const DISK_MIB: u64 = 16;
const PIPELINES: usize = 3;
/// Message of a run on a full disk.
const FULL: &str = "free some space";
/// Message of a worker that takes no jobs because of it.
const PAUSED: &str = "claims paused until it passes";
/// Skip message where mounting is not permitted.
pub const MOUNT_NOT_PERMITTED: &str = "not tried: no right to mount a disk";

fn untried() -> RoundReport {
    RoundReport { notes: [(MOUNT_NOT_PERMITTED.to_owned(), 1)].into(), ..RoundReport::default() }
}

pub fn store_full(seed: u64, intensity: u64) -> RoundReport {
    let Some(disk) = Disk::mount(DISK_MIB) else { return untried() };
    let mut round = Round::on_folder(seed, Some(&disk.path().join("objects")));
    for n in 0..PIPELINES {
        round.pipeline();
        round.change(n);
    }
    for _ in 0..2 {
        round.worker(&[]);
    }
    filled(round, &disk, "the store's disk full", intensity)
}

pub fn scratch_full(seed: u64, intensity: u64) -> RoundReport {
    let Some(disk) = Disk::mount(DISK_MIB) else { return untried() };
    let mut round = Round::new(seed, PIPELINES);
    let scratch = disk.path().join("scratch");
    for _ in 0..2 {
        round.worker(&[("SVC_SCRATCH_DIR", scratch.display().to_string())]);
    }
    filled(round, &disk, "scratch's disk full", intensity)
}

/// Jobs that find the disk full wait, and complete once there is room.
fn filled(mut round: Round, disk: &Disk, fault: &str, intensity: u64) -> RoundReport {
    for _ in 0..intensity {
        // Workers that paused since the last check take jobs again.
        round.until("the jobs to end", |round| round.is_idle());
        for n in 0..PIPELINES {
            round.change(n);
        }
        disk.fill();
        round.count(fault, 1);
        let noticed = |round: &Round| round.logged(FULL) + round.logged(PAUSED);
        let before = noticed(&round);
        for n in 0..PIPELINES {
            round.request_run(n, true);
        }
        round.until("a run or a probe to find the disk full", |round| noticed(round) > before);
        let pause = Duration::from_millis(round.rng.below(6_000));
        round.pass(pause);
        disk.make_room();
        round.enqueue();
        let pause = Duration::from_millis(round.rng.below(3_000));
        round.pass(pause);
    }
    let found = round.logged(FULL);
    round.note("runs and records without room", found as u64);
    round.check()
}
