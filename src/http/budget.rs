//! Memory for request bodies, shared by all requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What may be held at a time, and what is.
#[derive(Debug)]
pub(super) struct Budget {
    max: u64,
    held: AtomicU64,
}

/// A share of the budget, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, held: AtomicU64::new(0) })
    }

    /// A share of nothing, to grow.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }
}

impl Share {
    /// Makes the share at least `bytes`; false if the budget hasn't that much.
    pub(super) fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = |held: u64| held.checked_add(more).filter(|sum| *sum <= self.budget.max);
        let grown = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if grown {
            self.bytes += more;
        }
        grown
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_budget_and_come_back() {
        let budget = Budget::new(10);
        let (mut a, mut b) = (budget.share(), budget.share());
        assert!(a.grow_to(6) && a.grow_to(3) && !b.grow_to(5) && b.grow_to(4));
        assert!(!a.grow_to(7) && !a.grow_to(u64::MAX));
        drop(b);
        assert!(a.grow_to(10));
        drop(a);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
    }
}
