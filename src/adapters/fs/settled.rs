//! Whether somebody may still be writing a file.
//!
//! A file as this store put it was renamed into place whole. Any other is settled once it hasn't changed for
//! [`UNSETTLED_WAIT_MS`]. Its age is that of its change time: the kernel renews it with every write, while a
//! modification time can be set (`cp -p`, `rsync -t`, `touch -d`), also to the future.
//!
//! A change time that lies ahead of our clock (the clock was set back, or the folder is another machine's) tells no age.
//! Such a file is settled once this process has seen it unchanged for as long, by a clock that nobody sets: whoever asks
//! again after the wait gets to know. A process that did not ask before starts anew, so that it waits once.
//!
//! What this doesn't see: a writer that keeps its file open and pauses for longer than that. A read lease (`F_SETLEASE`)
//! would tell, but there is no safe wrapper of that call. What such a writer adds is noticed when it closes the file, as
//! any change; the table follows then.
//!
//! Without extended attributes, files that this store put are as those of others: they wait once.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;

use crate::domain::limits::UNSETTLED_WAIT_MS;
use crate::ports::store::{Bucket, StoreResult};

use super::FsStore;
use super::etag::Signature;
use super::read;

const WAIT: Duration = Duration::from_millis(UNSETTLED_WAIT_MS);
/// Files of the future that are remembered. Past that all are forgotten, which makes them wait once more.
const LOOKS_MAX: usize = 10_000;

/// When files that bear a time of the future were first seen as they are, in time since boot.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<(Bucket, String), (Signature, Duration)>>);

impl Looks {
    /// How long a file has been seen so.
    fn seen_for(&self, bucket: Bucket, key: &str, signature: Signature, now: Duration) -> Duration {
        let mut looks = self.0.lock();
        if looks.len() >= LOOKS_MAX {
            looks.clear();
        }
        let (seen, since) = looks.entry((bucket, key.to_owned())).or_insert((signature, now));
        if *seen != signature {
            (*seen, *since) = (signature, now);
        }
        now.saturating_sub(*since)
    }
}

impl FsStore {
    pub(super) fn is_unsettled(&self, bucket: Bucket, key: &str) -> StoreResult<bool> {
        let Some(place) = self.folders.place_to_read(bucket, key)? else { return Ok(false) };
        let Some(object) = read::open(&place, "looking at")? else { return Ok(false) };
        if object.is_ours() {
            return Ok(false);
        }
        let signature = object.signature();
        let age = self.clock.now() - signature.changed();
        if age >= TimeDelta::zero() {
            return Ok(age.to_std().is_ok_and(|age| age < WAIT));
        }
        Ok(self.looks.seen_for(bucket, key, signature, self.clock.since_boot()) < WAIT)
    }
}
