//! What a lake tells of itself.

/// Something came into the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LakeChange {
    /// These objects, by their whole keys.
    Keys(Vec<String>),
    /// Nobody knows what: compare everything.
    Rescan,
}
