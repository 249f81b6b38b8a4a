//! The lease on a pipeline: how long this process may still write for it, without asking the key-value store.
//!
//! Invariant: it never outlasts the lock. Its age counts from before the renewal was *sent*, by the boot clock (which
//! counts while the machine sleeps) and by the wall clock; the longer age counts.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::name::Slug;
use crate::ports::store::{Lease, LeaseLost};
use crate::runtime::Clock;

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    boot: Duration,
    wall: DateTime<Utc>,
}

impl Moment {
    pub fn now(clock: &dyn Clock) -> Self {
        Self { boot: clock.since_boot(), wall: clock.now() }
    }

    /// The age by wall clock or time since boot, whichever is longer.
    fn age(&self, clock: &dyn Clock) -> Duration {
        let wall = (clock.now() - self.wall).to_std().unwrap_or_default();
        clock.since_boot().saturating_sub(self.boot).max(wall)
    }
}

/// The lease of a held run lock.
pub struct RunLease {
    slug: Slug,
    fence: u64,
    ttl: Duration,
    clock: Arc<dyn Clock>,
    renewed: Mutex<Moment>,
    lost: AtomicBool,
}

impl RunLease {
    /// `since`: before the lock was requested.
    pub fn new(slug: Slug, fence: u64, ttl: Duration, clock: Arc<dyn Clock>, since: Moment) -> Self {
        Self { slug, fence, ttl, clock, renewed: Mutex::new(since), lost: AtomicBool::new(false) }
    }

    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Records that the lock was renewed by a request sent after `since`.
    pub fn renewed(&self, since: Moment) {
        *self.renewed.lock() = since;
    }

    /// Records that the lock has expired or is held by another process; this is final.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }
}

impl Lease for RunLease {
    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    /// Zero after two thirds of the TTL without a renewal: a write that starts later might end too late.
    fn remaining(&self) -> Result<Duration, LeaseLost> {
        if self.lost.load(Ordering::SeqCst) {
            return Err(LeaseLost);
        }
        let renewed = *self.renewed.lock();
        let age = renewed.age(&*self.clock);
        if age >= self.ttl * 2 / 3 {
            // A clock that is set back must not revive the lease.
            self.lose();
            return Err(LeaseLost);
        }
        Ok(self.ttl - age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[derive(Default)]
    struct ManualClock {
        boot_ms: Mutex<u64>,
        wall_ms: Mutex<i64>,
    }

    impl ManualClock {
        fn turn(&self, boot_ms: u64, wall_ms: i64) {
            *self.boot_ms.lock() += boot_ms;
            *self.wall_ms.lock() += wall_ms;
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH + TimeDelta::milliseconds(*self.wall_ms.lock())
        }

        fn since_boot(&self) -> Duration {
            Duration::from_millis(*self.boot_ms.lock())
        }
    }

    fn lease(clock: &Arc<ManualClock>) -> RunLease {
        let slug = Slug::parse("p").unwrap();
        let ttl = Duration::from_millis(90_000);
        RunLease::new(slug, 1, ttl, Arc::clone(clock) as Arc<dyn Clock>, Moment::now(&**clock))
    }

    fn left(lease: &RunLease) -> Option<u128> {
        lease.remaining().ok().map(|left| left.as_millis())
    }

    #[test]
    fn lease_ends_after_two_thirds_of_the_ttl() {
        let clock = Arc::new(ManualClock::default());
        let lease = lease(&clock);
        assert_eq!(left(&lease), Some(90_000));
        clock.turn(59_999, 59_999);
        assert_eq!(left(&lease), Some(30_001));
        clock.turn(1, 1);
        assert_eq!(left(&lease), None);
    }

    #[test]
    fn either_clock_ends_the_lease_and_none_revives_it() {
        for (boot, wall) in [(60_000, 0), (0, 60_000), (60_000, -1_000_000)] {
            let clock = Arc::new(ManualClock::default());
            let lease = lease(&clock);
            clock.turn(boot, wall);
            assert_eq!(left(&lease), None, "{boot} {wall}");
            clock.turn(0, -2_000_000);
            lease.renewed(Moment::now(&*clock));
            assert_eq!(left(&lease), None);
        }
    }

    #[test]
    fn renewal_counts_from_the_time_it_was_sent() {
        let clock = Arc::new(ManualClock::default());
        let lease = lease(&clock);
        clock.turn(30_000, 30_000);
        let sent = Moment::now(&*clock);
        clock.turn(4_000, 4_000);
        lease.renewed(sent);
        assert_eq!(left(&lease), Some(86_000));
    }

    #[test]
    fn wall_clock_set_back_extends_no_ttl() {
        let clock = Arc::new(ManualClock::default());
        let lease = lease(&clock);
        clock.turn(10_000, -50_000);
        assert_eq!(left(&lease), Some(80_000));
    }
}
