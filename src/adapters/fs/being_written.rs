//! Whether another process may still be writing a file.
//!
//! Files that this store put were renamed into place whole. Any other file is complete once it hasn't changed for
//! [`UNSETTLED_WAIT_MS`]. Its age is that of its change time, which the kernel updates with every write; a modification
//! time can be set (`cp -p`, `rsync -t`, `touch -d`), also to the future.
//!
//! A change time ahead of our clock (the clock was set back, or another machine owns the folder) gives no age. Such a file
//! is complete once this process has seen it unchanged for as long, by a monotonic clock. A new process starts over, and
//! so waits once.
//!
//! Limit: a writer that pauses for longer with the file open is not noticed. A read lease (`F_SETLEASE`) would show it,
//! but has no safe wrapper. Its later writes are noticed when it closes the file, as any change.
//!
//! Without extended attributes, files written by this store can't be distinguished from others, and wait once.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;

use crate::domain::limits::UNSETTLED_WAIT_MS;
use crate::ports::store::Bucket;
use crate::runtime::Clock;

use super::etag::Signature;
use super::read::OpenObject;

const WAIT: Duration = Duration::from_millis(UNSETTLED_WAIT_MS);
/// Files with a future change time that are tracked. Beyond that all are dropped, and wait once more.
const FILES_MAX: usize = 10_000;

/// When files with a future change time were first seen in their current state, in time since boot.
#[derive(Default)]
pub(super) struct FirstSeen(Mutex<HashMap<(Bucket, String), (Signature, Duration)>>);

impl FirstSeen {
    /// How long a file has been seen in this state.
    fn age(&self, (bucket, key): (Bucket, &str), signature: Signature, now: Duration) -> Duration {
        let mut files = self.0.lock();
        if files.len() >= FILES_MAX {
            files.clear();
        }
        let (seen, since) = files.entry((bucket, key.to_owned())).or_insert((signature, now));
        if *seen != signature {
            (*seen, *since) = (signature, now);
        }
        now.saturating_sub(*since)
    }
}

pub(super) fn is_being_written(
    object: &OpenObject,
    key: (Bucket, &str),
    first_seen: &FirstSeen,
    clock: &dyn Clock,
) -> bool {
    if object.is_own() {
        return false;
    }
    let age = clock.now() - object.signature().changed();
    if age >= TimeDelta::zero() {
        return age.to_std().is_ok_and(|age| age < WAIT);
    }
    first_seen.age(key, object.signature(), clock.since_boot()) < WAIT
}
