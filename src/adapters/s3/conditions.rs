//! Which preconditions a store enforces, by bucket.

use parking_lot::Mutex;

use crate::ports::store::Bucket;

/// The preconditions that a bucket's store supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Enforces `If-Match` and `If-None-Match: *` on puts.
    pub put: bool,
    /// Enforces them on completing a multipart upload.
    pub complete: bool,
    /// Lists tags.
    pub listed_etags: bool,
}

/// Probed conditions of each bucket.
#[derive(Default)]
pub(super) struct ConditionsCache([Mutex<Option<Conditions>>; Bucket::ALL.len()]);

impl ConditionsCache {
    pub(super) fn of(&self, bucket: Bucket) -> &Mutex<Option<Conditions>> {
        &self.0[bucket_index(bucket)]
    }
}

pub(super) fn bucket_index(bucket: Bucket) -> usize {
    match bucket {
        Bucket::Pipelines => 0,
        Bucket::Lake => 1,
        Bucket::Warehouse => 2,
    }
}
