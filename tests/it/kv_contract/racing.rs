//! Concurrent operations, each with its own handle.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lakemill::domain::login::LoginScopes;
use lakemill::ports::Kv;
use lakemill::ports::jobs::{ClaimLimits, EnqueueOutcome, Entry, StartOutcome};
use lakemill::ports::sessions::Admission;

use super::{Fixture, IMMEDIATELY, TTL, message, seconds, slug, start};
use crate::support::concurrent;

/// Longest wait for threads that share work.
const DEADLINE: Duration = Duration::from_secs(60);

/// Like [`concurrent::race`], each thread with its own handle.
pub fn race<T: Send>(f: &Fixture, threads: usize, act: impl Fn(usize, &dyn Kv) -> T + Sync) -> Vec<T> {
    concurrent::race(threads, || f.open(), |n, kv| act(n, &**kv))
}

pub fn racing_claims_take_each_entry_once(f: &Fixture) {
    let jobs: Vec<_> = (0..200).map(|n| f.enqueue(&format!("p{}", n % 20)).job_id).collect();
    let claimed = race(f, 4, |n, kv| {
        let mut mine: Vec<Entry> = Vec::new();
        loop {
            let entries = kv.claim(&format!("c{n}"), ClaimLimits::any(1 + n), IMMEDIATELY).unwrap();
            if entries.is_empty() {
                return mine;
            }
            mine.extend(entries);
        }
    });
    let mut ids: Vec<_> = claimed.iter().flatten().map(|entry| message(entry).job_id).collect();
    ids.sort();
    let mut expected = jobs;
    expected.sort();
    assert_eq!(ids, expected);
}

pub fn waiting_claims_share_new_entries(f: &Fixture) {
    f.claims_nothing();
    const JOBS: usize = 40;
    let left = AtomicUsize::new(JOBS);
    let seen = Mutex::new(BTreeMap::new());
    race(f, 4, |n, kv| {
        if n == 0 {
            for m in 0..JOBS {
                kv.enqueue(&f.job(&format!("p{m}"))).unwrap();
            }
            return;
        }
        let deadline = Instant::now() + DEADLINE;
        while left.load(Ordering::SeqCst) > 0 {
            assert!(Instant::now() < deadline, "{left:?} of {JOBS} jobs were not claimed");
            for entry in kv.claim(&format!("c{n}"), ClaimLimits::any(1), seconds(1)).unwrap() {
                *seen.lock().unwrap().entry(message(&entry).job_id).or_insert(0) += 1;
                left.fetch_sub(1, Ordering::SeqCst);
            }
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!((seen.len(), seen.values().max()), (JOBS, Some(&1)));
}

pub fn one_of_many_starts_gets_the_lock(f: &Fixture) {
    for round in 0..5 {
        let pipeline = format!("p{round}");
        for _ in 0..6 {
            f.enqueue(&pipeline);
        }
        let entries: Vec<Entry> = (0..6).map(|n| f.claim(&format!("c{n}"))).collect();
        let started = race(f, 6, |n, kv| start(kv, &format!("c{n}"), &entries[n], TTL));
        let count = |wanted: fn(&StartOutcome) -> bool| started.iter().filter(|s| wanted(s)).count();
        assert_eq!(count(|s| matches!(s, StartOutcome::Running(_))), 1, "{started:?}");
        assert_eq!(count(|s| matches!(s, StartOutcome::Deferred { .. })), 5, "{started:?}");
    }
}

pub fn one_of_many_reclaims_gets_the_entry(f: &Fixture) {
    let (_, old) = f.run("a", "trips");
    f.advance(super::IDLE + seconds(5));
    let taken = race(f, 6, |n, kv| {
        let consumer = format!("c{n}");
        let entries = kv.reclaim(&consumer, 10, super::IDLE).unwrap();
        entries.iter().map(|entry| start(kv, &consumer, entry, TTL)).collect::<Vec<_>>()
    });
    let starts: Vec<_> = taken.into_iter().flatten().collect();
    assert!(matches!(&starts[..], [StartOutcome::Running(start)] if start.lease.fence > old.lease.fence), "{starts:?}");
    f.is_lost(&old.lease);
}

pub fn one_of_many_locks_wins(f: &Fixture) {
    let lease = race(f, 8, |_, kv| kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().is_some());
    assert_eq!(lease.iter().filter(|lease| **lease).count(), 1);
    let locked = race(f, 8, |n, kv| kv.try_lock("x", &format!("t{n}"), TTL).unwrap());
    assert_eq!(locked.iter().filter(|locked| **locked).count(), 1);
}

pub fn one_of_many_enqueues_of_a_job_succeeds(f: &Fixture) {
    let job = f.job("trips");
    let outcomes = race(f, 8, |_, kv| kv.enqueue(&job).unwrap());
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == EnqueueOutcome::Queued).count(), 1);
    assert_eq!(f.places(), (1, 0, 0));
}

pub fn racing_fires_create_one_job_per_window(f: &Fixture) {
    let pipelines: Vec<_> = (0..50).map(|n| slug(&format!("p{n}"))).collect();
    f.kv.extend_windows(&pipelines).unwrap();
    f.advance(seconds(7));
    let fired = race(f, 8, |_, kv| {
        let mut fired = 0;
        loop {
            let due = kv.due_windows(100).unwrap();
            if due.is_empty() {
                return fired;
            }
            fired += due.iter().filter(|slug| kv.fire_window(&f.job(slug.as_str())).unwrap()).count();
        }
    });
    assert_eq!(fired.iter().sum::<usize>(), 50, "{fired:?}");
    let entries = f.kv.claim("a", ClaimLimits::any(100), IMMEDIATELY).unwrap();
    let jobs: BTreeMap<_, _> = entries.iter().map(|entry| (message(entry).pipeline, 1)).collect();
    assert_eq!((entries.len(), jobs.len(), f.kv.counts().unwrap().windows), (50, 50, 0));
}

pub fn events_racing_with_a_fire_are_in_this_window_or_the_next(f: &Fixture) {
    f.kv.extend_windows(&[slug("trips")]).unwrap();
    f.advance(seconds(7));
    let fired = race(f, 4, |n, kv| {
        if n == 0 {
            kv.extend_windows(&[slug("trips")]).unwrap();
            return false;
        }
        kv.fire_window(&f.job("trips")).unwrap()
    });
    let jobs = fired.iter().filter(|fired| **fired).count() as u64;
    let counts = f.kv.counts().unwrap();
    assert_eq!(counts.stream, jobs);
    // The event came before the firing, which was postponed or included it; or after it, and opened a window.
    assert!(jobs <= 1 && jobs + counts.windows >= 1, "{jobs} jobs, {} windows", counts.windows);
    f.advance(seconds(32));
    let due = f.kv.due_windows(10).unwrap();
    assert_eq!(due.len() as u64, counts.windows);
}

pub fn each_due_job_is_released_once(f: &Fixture) {
    for n in 0..40 {
        let (_, start) = f.run("a", &format!("p{n}"));
        f.requeue(&start.lease, seconds(10));
    }
    f.advance(seconds(12));
    let released = race(f, 4, |_, kv| {
        let mut all = 0;
        loop {
            match kv.release_due(3).unwrap() {
                0 => return all,
                some => all += some,
            }
        }
    });
    assert_eq!(released.iter().sum::<usize>(), 40, "{released:?}");
    assert_eq!(f.places(), (40, 0, 0));
}

pub fn racing_logins_get_no_extra_attempts(f: &Fixture) {
    let address = "192.0.2.1".parse().unwrap();
    let tries = race(f, 8, |_, kv| {
        (0..3).filter(|_| kv.admit(&LoginScopes::of(address)).unwrap() == Admission::Allowed).count()
    });
    assert_eq!(tries.iter().sum::<usize>(), 5, "{tries:?}");
}
