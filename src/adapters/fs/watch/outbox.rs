//! Changes to report: keys in batches, or a rescan.
//!
//! Invariant: every added key reaches the receiver, or a later `Rescan` does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};

use crate::ports::store::LakeChange;

/// Keys of one message.
const KEYS_MAX: usize = 1_000;

pub(super) struct Outbox {
    out: Sender<LakeChange>,
    /// How long keys are collected.
    pause: Duration,
    keys: BTreeSet<String>,
    rescan: bool,
    /// When the first unreported change was added.
    since: Option<Instant>,
    /// The channel was full: a `Rescan` waits for room.
    blocked: bool,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(out: Sender<LakeChange>, pause: Duration) -> Self {
        Self { out, pause, keys: BTreeSet::new(), rescan: false, since: None, blocked: false, closed: false }
    }

    pub(super) fn key(&mut self, key: String, now: Instant) {
        // The pending rescan covers it.
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
        if !self.blocked {
            self.since.get_or_insert(now);
        }
    }

    /// When the next message is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + self.pause)
    }

    /// Sends the message that is due.
    pub(super) fn flush(&mut self, now: Instant) {
        if !self.blocked && self.due().is_some_and(|due| due <= now) {
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
                self.blocked = true;
            }
            Err(TrySendError::Disconnected(_)) => self.closed = true,
        }
    }

    /// The channel to which a `Rescan` must be sent as soon as it has room; then [`Outbox::rescan_sent`].
    pub(super) fn blocked(&self) -> Option<&Sender<LakeChange>> {
        self.blocked.then_some(&self.out)
    }

    pub(super) fn rescan_sent(&mut self) {
        self.blocked = false;
        self.rescan = false;
        self.since = None;
    }

    /// The receiver is gone.
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
    fn burst_of_keys_is_one_message_without_duplicates() {
        let (mut outbox, changes, start) = outbox(8);
        for (at, key) in [(0, "b"), (40, "a"), (99, "b")] {
            outbox.key(key.to_owned(), start + Duration::from_millis(at));
            outbox.flush(start + Duration::from_millis(at));
        }
        assert!(changes.is_empty());
        assert_eq!(outbox.due(), Some(start + PAUSE));
        outbox.flush(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [keys(&["a", "b"])]);
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn full_message_is_sent_at_once() {
        let (mut outbox, changes, start) = outbox(8);
        (0..2_500).for_each(|n| outbox.key(n.to_string(), start));
        let sizes = changes.try_iter().map(|c| if let LakeChange::Keys(k) = c { k.len() } else { 0 });
        assert_eq!(sizes.collect::<Vec<_>>(), [KEYS_MAX, KEYS_MAX]);
        assert!(outbox.due().is_some());
    }

    #[test]
    fn rescan_replaces_pending_keys() {
        let (mut outbox, changes, start) = outbox(8);
        outbox.key("a".to_owned(), start);
        outbox.rescan(start);
        outbox.key("b".to_owned(), start);
        outbox.flush(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [LakeChange::Rescan]);
        outbox.key("c".to_owned(), start);
        outbox.flush(start + PAUSE);
        assert_eq!(changes.try_iter().collect::<Vec<_>>(), [keys(&["c"])]);
    }

    #[test]
    fn full_channel_merges_changes_into_one_rescan() {
        let (mut outbox, changes, start) = outbox(1);
        for key in ["a", "b", "c"] {
            outbox.key(key.to_owned(), start);
            outbox.flush(start + PAUSE);
        }
        outbox.rescan(start);
        assert_eq!(outbox.due(), None, "only room in the channel wakes");
        let out = outbox.blocked().expect("there was no room");
        assert_eq!(changes.recv(), Ok(keys(&["a"])));
        out.send(LakeChange::Rescan).unwrap();
        outbox.rescan_sent();
        assert!(outbox.blocked().is_none() && outbox.due().is_none());
        assert_eq!(changes.recv(), Ok(LakeChange::Rescan));
        outbox.key("d".to_owned(), start);
        outbox.flush(start + PAUSE);
        assert_eq!(changes.recv(), Ok(keys(&["d"])));
    }

    #[test]
    fn closes_when_the_receiver_is_gone() {
        let (mut outbox, changes, start) = outbox(1);
        drop(changes);
        outbox.key("a".to_owned(), start);
        outbox.flush(start + PAUSE);
        assert!(outbox.is_closed());
    }
}
