//! The lock on a pipeline's runs, held for something that is no run.

use std::time::Duration;

use lakemill::ports::jobs::{Holder, Release, RunHold, Started};

use super::{Fixture, TTL, seconds, slug};

fn hold(f: &Fixture) -> Option<RunHold> {
    f.kv.hold(&slug("trips"), TTL, 0).unwrap()
}

pub fn a_hold_keeps_other_holds_and_runs_out(f: &Fixture) {
    let held = hold(f).unwrap();
    assert_eq!((held.pipeline.as_str(), hold(f)), ("trips", None));
    let job = f.defer("trips");
    assert!(f.kv.hold(&slug("other"), TTL, 0).unwrap().is_some(), "another pipeline's lock is free");
    assert_eq!(f.kv.release(&held).unwrap(), Release::Done);
    f.kv.release_due(10).unwrap();
    assert_eq!(f.run_next("a").held.job_id, job.job_id);
}

pub fn a_run_keeps_holds_out(f: &Fixture) {
    let (_, start) = f.run("a", "trips");
    assert_eq!(hold(f), None);
    f.end(&start.held);
    assert!(hold(f).is_some());
}

pub fn a_hold_lasts_for_its_time_from_the_last_renewal(f: &Fixture) {
    let held = hold(f).unwrap();
    for _ in 0..3 {
        f.advance(seconds(45));
        assert_eq!(f.kv.renew(&held, TTL).unwrap(), Release::Done);
    }
    assert_eq!(f.kv.renew(&held, Duration::from_secs(20)).unwrap(), Release::Done);
    f.advance(seconds(25));
    assert_eq!(f.kv.renew(&held, TTL).unwrap(), Release::Lost);
    assert_eq!(f.kv.release(&held).unwrap(), Release::Lost);
    assert!(hold(f).unwrap().fence > held.fence);
}

pub fn a_hold_that_was_lost_changes_nothing(f: &Fixture) {
    let old = hold(f).unwrap();
    f.advance(TTL + seconds(5));
    let (_, start) = f.run("a", "trips");
    assert!(start.held.fence > old.fence);
    assert_eq!(f.kv.renew(&old, TTL).unwrap(), Release::Lost);
    assert_eq!(f.kv.release(&old).unwrap(), Release::Lost);
    assert_eq!(hold(f), None, "the run has the lock as before");
    let stranger = RunHold { token: "guessed".to_owned(), ..old };
    assert_eq!(f.kv.release(&stranger).unwrap(), Release::Lost);
    f.end(&start.held);
}

pub fn a_release_happens_once(f: &Fixture) {
    let held = hold(f).unwrap();
    assert_eq!(f.kv.release(&held).unwrap(), Release::Done);
    assert_eq!(f.kv.release(&held).unwrap(), Release::Lost);
    let again = hold(f).unwrap();
    assert_eq!(f.kv.release(&held).unwrap(), Release::Lost);
    assert_eq!(f.kv.release(&again).unwrap(), Release::Done);
}

pub fn a_hold_that_ran_out_does_not_defer(f: &Fixture) {
    hold(f).unwrap();
    f.advance(TTL + seconds(5));
    f.enqueue("trips");
    let entry = f.claim("a");
    assert!(matches!(f.start("a", &entry), Started::Running(_)));
}

pub fn who_holds_a_lock_is_told_as_long_as_it_lasts(f: &Fixture) {
    let holder = || f.kv.holder(&slug("trips")).unwrap();
    assert_eq!(holder(), None);
    let held = hold(f).unwrap();
    assert_eq!((holder(), f.kv.holder(&slug("other")).unwrap()), (Some(Holder::Other), None));
    assert_eq!(f.kv.release(&held).unwrap(), Release::Done);
    let (_, first) = f.run("a", "trips");
    let of_first = holder();
    assert!(matches!(of_first, Some(Holder::Run { .. })), "{of_first:?}");
    assert_eq!(f.kv.renew(&held, TTL).unwrap(), Release::Lost);
    assert_eq!(holder(), of_first);
    f.advance(TTL + seconds(5));
    assert_eq!(holder(), None, "its job still shows as running");
    let (_, second) = f.run("b", "trips");
    let of_second = holder();
    assert!(matches!(of_second, Some(Holder::Run { .. })) && of_second != of_first, "{first:?}, {of_second:?}");
    f.end(&second.held);
    assert_eq!(holder(), None);
}
