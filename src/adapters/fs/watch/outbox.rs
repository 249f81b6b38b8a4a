//! What is yet to be told: keys in batches, or that everything has to be looked at.
//!
//! Invariant: every key given to it reaches the receiver, or a `Rescan` does after it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};

use crate::ports::lake_changes::LakeChange;

/// Keys of one message.
const KEYS_MAX: usize = 1_000;

pub(super) struct Outbox {
    out: Sender<LakeChange>,
    /// How long keys are gathered.
    pause: Duration,
    keys: BTreeSet<String>,
    rescan: bool,
    /// When the first was gathered of what is yet to be told.
    since: Option<Instant>,
    /// The channel was full: only the `Rescan` is waiting, for room.
    stuck: bool,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(out: Sender<LakeChange>, pause: Duration) -> Self {
        Self { out, pause, keys: BTreeSet::new(), rescan: false, since: None, stuck: false, closed: false }
    }

    pub(super) fn key(&mut self, key: String, now: Instant) {
        // A rescan that is yet to be told covers it.
        if self.rescan {
            return;
        }
        self.keys.insert(key);
        self.since.get_or_insert(now);
        if self.keys.len() >= KEYS_MAX {
            self.send();
        }
    }

    pub(super) fn rescan(&mut self, now: Instant) {
        self.keys.clear();
        self.rescan = true;
        if !self.stuck {
            self.since.get_or_insert(now);
        }
    }

    /// When there is something to send.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + self.pause)
    }

    /// Sends what is due.
    pub(super) fn tend(&mut self, now: Instant) {
        if !self.stuck && self.due().is_some_and(|due| due <= now) {
            self.send();
        }
    }

    fn send(&mut self) {
        self.since = None;
        let change = match self.rescan {
            true => LakeChange::Rescan,
            false => LakeChange::Keys(std::mem::take(&mut self.keys).into_iter().collect()),
        };
        match self.out.try_send(change) {
            Ok(()) => self.rescan = false,
            Err(TrySendError::Full(_)) => {
                self.rescan = true;
                self.stuck = true;
            }
            Err(TrySendError::Disconnected(_)) => self.closed = true,
        }
    }

    /// Where a `Rescan` has to be sent as soon as there is room; then [`Outbox::delivered`].
    pub(super) fn stuck(&self) -> Option<&Sender<LakeChange>> {
        self.stuck.then_some(&self.out)
    }

    pub(super) fn delivered(&mut self) {
        self.stuck = false;
        self.rescan = false;
        self.since = None;
    }

    /// Nobody listens any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, bounded};

    use super::*;

    const PAUSE: Duration = Duration::from_millis(100);

    fn outbox(room: usize) -> (Outbox, Receiver<LakeChange>, Instant) {
        let (out, changes) = bounded(room);
        (Outbox::new(out, PAUSE), changes, Instant::now())
    }

    fn keys(keys: &[&str]) -> LakeChange {
        LakeChange::Keys(keys.iter().map(|k| (*k).to_owned()).collect())
    }

    #[test]
    fn keys_of_a_burst_go_in_one_message_each_once() {
        let (mut outbox, changes, start) = outbox(8);
        for (at, key) in [(0, "b"), (40, "a"), (99, "b")] {
            outbox.key(key.to_owned(), start + Duration::from_millis(at));
            outbox.tend(start + Duration::from_millis(at));
        }
        assert!(changes.is_empty());
        assert_eq!(outbox.due(), Some(start + PAUSE));
        outbox.tend(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [keys(&["a", "b"])]);
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn a_full_message_goes_at_once() {
        let (mut outbox, changes, start) = outbox(8);
        (0..2_500).for_each(|n| outbox.key(n.to_string(), start));
        let sizes = changes.try_iter().map(|c| if let LakeChange::Keys(k) = c { k.len() } else { 0 });
        assert_eq!(sizes.collect::<Vec<_>>(), [KEYS_MAX, KEYS_MAX]);
        assert!(outbox.due().is_some());
    }

    #[test]
    fn a_rescan_takes_the_place_of_keys() {
        let (mut outbox, changes, start) = outbox(8);
        outbox.key("a".to_owned(), start);
        outbox.rescan(start);
        outbox.key("b".to_owned(), start);
        outbox.tend(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [LakeChange::Rescan]);
        outbox.key("c".to_owned(), start);
        outbox.tend(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [keys(&["c"])]);
    }

    #[test]
    fn a_full_channel_makes_one_rescan_of_all_that_has_no_room() {
        let (mut outbox, changes, start) = outbox(1);
        for key in ["a", "b", "c"] {
            outbox.key(key.to_owned(), start);
            outbox.tend(start + PAUSE);
        }
        outbox.rescan(start);
        assert_eq!(outbox.due(), None, "there is nothing to wake for but room");
        let out = outbox.stuck().expect("there was no room");
        assert_eq!(changes.recv(), Ok(keys(&["a"])));
        out.send(LakeChange::Rescan).unwrap();
        outbox.delivered();
        assert!(outbox.stuck().is_none() && outbox.due().is_none());
        assert_eq!(changes.recv(), Ok(LakeChange::Rescan));
        outbox.key("d".to_owned(), start);
        outbox.tend(start + PAUSE);
        assert_eq!(changes.recv(), Ok(keys(&["d"])));
    }

    #[test]
    fn it_closes_when_nobody_listens() {
        let (mut outbox, changes, start) = outbox(1);
        drop(changes);
        outbox.key("a".to_owned(), start);
        outbox.tend(start + PAUSE);
        assert!(outbox.is_closed());
    }
}
