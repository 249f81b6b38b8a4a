//! News of the lake from a store that can watch it, so that nobody has to send webhooks.

use crossbeam_channel::Receiver;

/// What changed. News may come twice, and for files that are gone again; none is lost while the receiver lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LakeChange {
    /// Whole keys of the lake bucket (`pipelines/<slug>/…`) of objects that were put, or written anew, in order.
    Keys(Vec<String>),
    /// Anything may have changed: every pipeline's part of the lake has to be compared with what was made of it.
    Rescan,
}

/// Ends (`RecvError`) when the watch ends.
pub type LakeChanges = Receiver<LakeChange>;
