//! The run lock in an object store.

use std::sync::Arc;
use std::time::Duration;

use lakemill::domain::layout::run_lock_key;
use lakemill::domain::name::Slug;
use lakemill::pipelines::object_lock::{Acquired, LockRequest, ObjectLock, OtherRun};
use lakemill::ports::ObjectStore as _;
use lakemill::ports::jobs::ReleaseOutcome;
use lakemill::ports::store::{Bucket, Lease as _, WriteOptions};

use crate::support::memory_store::MemoryStore;
use crate::support::moved_clock::MovedClock;
use crate::support::site::slug;

const TTL: Duration = Duration::from_secs(60);

struct World {
    store: MemoryStore,
    clock: Arc<MovedClock>,
    slug: Slug,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(MovedClock::default());
        clock.stop();
        let store = MemoryStore::new().timed_by(Arc::clone(&clock) as _);
        Self { store, clock, slug: slug("local") }
    }

    fn acquire(&self, fence_floor: u64) -> Acquired<'_> {
        let request = LockRequest { slug: &self.slug, ttl: TTL, fence_floor, holder: "host-7" };
        ObjectLock::acquire(&self.store, Arc::clone(&self.clock) as _, &request).unwrap()
    }

    #[track_caller]
    fn acquired(&self, fence_floor: u64) -> Box<ObjectLock<'_>> {
        match self.acquire(fence_floor) {
            Acquired::Held(lock) => lock,
            Acquired::Busy(other) => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn busy(&self) -> OtherRun {
        match self.acquire(0) {
            Acquired::Busy(other) => other,
            Acquired::Held(_) => panic!("the lock is free"),
        }
    }
}

#[test]
fn lock_is_held_until_it_is_released() {
    let world = World::new();
    let lock = world.acquired(5);
    let other = world.busy();
    assert_eq!((other.holder.as_str(), lock.lease().fence()), ("host-7", 5));
    assert!(!world.busy().is_newer_than(&other));
    assert_eq!(lock.release().unwrap(), ReleaseOutcome::Released);
    assert!(lock.lease().remaining().is_err(), "it writes nothing more");
    assert_eq!(world.acquired(0).lease().fence(), 6, "above that of every earlier lock");
}

#[test]
fn renewed_lock_does_not_expire_and_shows_that_its_holder_lives() {
    let world = World::new();
    let lock = world.acquired(0);
    for _ in 0..10 {
        let before = world.busy();
        world.clock.advance(TTL / 2);
        assert_eq!(lock.renew().unwrap(), ReleaseOutcome::Released);
        assert!(world.busy().is_newer_than(&before));
        assert!(lock.lease().remaining().is_ok());
    }
}

#[test]
fn lock_of_a_dead_holder_expires_after_its_lease() {
    let world = World::new();
    let lock = world.acquired(0);
    world.clock.advance(TTL - Duration::from_secs(1));
    assert!(lock.lease().remaining().is_err(), "the lease ends before the lock");
    world.busy();
    world.clock.advance(Duration::from_secs(10));
    let next = world.acquired(0);
    assert!(next.lease().fence() > lock.lease().fence());
    assert_eq!(lock.renew().unwrap(), ReleaseOutcome::Lost);
    assert_eq!(lock.release().unwrap(), ReleaseOutcome::Lost);
    assert_eq!(next.renew().unwrap(), ReleaseOutcome::Released, "the dead holder changed nothing");
}

#[test]
fn clock_of_this_machine_does_not_matter() {
    let mut world = World::new();
    world.store = world.store.skewed(chrono::TimeDelta::hours(5));
    let _lock = world.acquired(0);
    // By this machine's clock the store's time would be in the future.
    let other = world.busy();
    assert!(other.expires_in > TTL, "{other:?}");
}

#[test]
fn holder_recognizes_a_renewal_whose_response_was_lost() {
    let world = World::new();
    let lock = world.acquired(0);
    let key = run_lock_key(&world.slug);
    let stored = world.store.contents(Bucket::Pipelines).remove(&key).unwrap();
    let text = String::from_utf8(stored.to_vec()).unwrap().replace("\"renewals\": 0", "\"renewals\": 1");
    world.store.put(Bucket::Pipelines, &key, text.as_bytes(), &WriteOptions::default()).unwrap();
    assert_eq!(lock.renew().unwrap(), ReleaseOutcome::Released);
    let text = text.replace("\"token\": \"", "\"token\": \"x");
    world.store.put(Bucket::Pipelines, &key, text.as_bytes(), &WriteOptions::default()).unwrap();
    assert_eq!(lock.renew().unwrap(), ReleaseOutcome::Lost, "the lock is another's");
    assert!(lock.lease().remaining().is_err());
}

#[test]
fn unreadable_lock_is_respected_for_an_hour() {
    let world = World::new();
    let key = run_lock_key(&world.slug);
    world.store.put(Bucket::Pipelines, &key, b"{", &WriteOptions::default()).unwrap();
    world.clock.advance(Duration::from_secs(3_590));
    assert_eq!(world.busy().holder, "unknown");
    world.clock.advance(Duration::from_secs(20));
    world.acquired(0);
}
