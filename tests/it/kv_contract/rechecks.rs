//! Pipelines to compare again after one of their jobs failed because of a dependency.

use lakemill::domain::limits::{RECHECK_PAUSE_FIRST_MS, RECHECK_PAUSE_MS_MAX, RECHECKS_MAX};
use lakemill::domain::name::Slug;
use lakemill::ports::rechecks::Recheck;

use super::{Fixture, seconds, slug};

fn take(f: &Fixture) -> Vec<Slug> {
    f.kv.take_rechecks(10, seconds(120)).unwrap()
}

fn ms(n: u64) -> std::time::Duration {
    std::time::Duration::from_millis(n)
}

pub fn recheck_is_taken_once_and_returns_unless_completed(f: &Fixture) {
    let other = f.open();
    assert_eq!(take(f), []);
    f.kv.add_recheck(&slug("one")).unwrap();
    f.advance(seconds(2));
    f.kv.add_recheck(&slug("two")).unwrap();
    f.kv.add_recheck(&slug("one")).unwrap();
    assert_eq!(other.take_rechecks(1, seconds(120)).unwrap(), [slug("one")], "the longest due first");
    assert_eq!(take(f), [slug("two")]);
    assert_eq!(take(f), []);
    f.kv.complete_recheck(&slug("two"), Recheck::Done).unwrap();
    // The worker that claimed the other one has died.
    f.advance(seconds(122));
    assert_eq!(f.open().take_rechecks(10, seconds(120)).unwrap(), [slug("one")]);
    f.kv.complete_recheck(&slug("one"), Recheck::Retry).unwrap();
    assert_eq!(take(f), []);
    f.advance(seconds(7));
    assert_eq!(take(f), [slug("one")]);
    f.kv.complete_recheck(&slug("one"), Recheck::Done).unwrap();
    f.kv.complete_recheck(&slug("one"), Recheck::Retry).unwrap();
    f.advance(seconds(200));
    assert_eq!(take(f), [], "what is done is not due again");
}

pub fn recheck_is_due_after_another_failure_and_a_doubling_pause(f: &Fixture) {
    let trips = slug("trips");
    let mut pause = RECHECK_PAUSE_FIRST_MS;
    f.kv.add_recheck(&trips).unwrap();
    for round in 0..9 {
        assert_eq!(take(f), std::slice::from_ref(&trips), "round {round}");
        f.kv.complete_recheck(&trips, Recheck::RunRequested).unwrap();
        assert_eq!(take(f), [], "the run may complete");
        f.kv.add_recheck(&trips).unwrap();
        f.kv.add_recheck(&trips).unwrap();
        f.advance(ms(pause - 5_000));
        assert_eq!(take(f), [], "the pause of round {round} is not over");
        f.advance(ms(6_000));
        pause = (pause * 2).min(RECHECK_PAUSE_MS_MAX);
    }
    assert_eq!(take(f), std::slice::from_ref(&trips));
    f.kv.complete_recheck(&trips, Recheck::RunRequested).unwrap();
    // Without another failure the backoff is reset.
    f.advance(ms(RECHECK_PAUSE_MS_MAX + 1_000));
    assert_eq!(take(f), []);
    f.kv.add_recheck(&trips).unwrap();
    assert_eq!(take(f), std::slice::from_ref(&trips));
    f.kv.complete_recheck(&trips, Recheck::RunRequested).unwrap();
    f.kv.add_recheck(&trips).unwrap();
    f.advance(ms(RECHECK_PAUSE_FIRST_MS + 1_000));
    assert_eq!(take(f), [trips]);
}

pub fn rechecks_are_bounded_and_expire_after_a_week(f: &Fixture) {
    f.backend.stop();
    let add = |n: usize| f.kv.add_recheck(&slug(&format!("p{n}"))).unwrap();
    (0..RECHECKS_MAX).for_each(add);
    add(RECHECKS_MAX);
    let mut taken = 0;
    loop {
        let some = f.kv.take_rechecks(1_000, seconds(7_200)).unwrap();
        assert!(!some.contains(&slug(&format!("p{RECHECKS_MAX}"))));
        taken += some.len();
        if some.is_empty() {
            break;
        }
    }
    assert_eq!(taken, RECHECKS_MAX);
    f.advance(seconds(8 * 86_400));
    f.kv.add_recheck(&slug("late")).unwrap();
    assert!(take(f).contains(&slug("late")));
}
