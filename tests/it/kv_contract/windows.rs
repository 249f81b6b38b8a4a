//! Batches of new files: due after 5 s of quiet, 30 s after the first at the latest, one job each.

use lakemill::ports::jobs::ClaimLimits;
use lakemill::ports::schedule::CloseReason;

use super::{Fixture, IMMEDIATELY, message, seconds, slug};

fn extend(f: &Fixture, pipelines: &[&str]) {
    let slugs: Vec<_> = pipelines.iter().map(|name| slug(name)).collect();
    f.kv.extend_windows(&slugs).unwrap();
}

fn due(f: &Fixture) -> Vec<String> {
    f.kv.due_windows(100).unwrap().iter().map(ToString::to_string).collect()
}

pub fn window_is_due_after_five_quiet_seconds(f: &Fixture) {
    assert_eq!(due(f), [""; 0]);
    extend(f, &["trips"]);
    f.advance(seconds(3));
    assert_eq!(due(f), [""; 0]);
    assert!(!f.kv.fire_window(&f.job("trips")).unwrap(), "it isn't due");
    assert!(!f.kv.close_window(&slug("trips"), CloseReason::AutoRunOff).unwrap(), "it isn't due");
    extend(f, &["trips"]);
    f.advance(seconds(3));
    assert_eq!(due(f), [""; 0], "it was extended");
    f.advance(seconds(3));
    assert_eq!(due(f), ["trips"]);
    assert_eq!(f.places(), (0, 0, 0), "it becomes a job when it is fired");
}

pub fn window_shows_its_due_time_until_closed(f: &Fixture) {
    let trips = slug("trips");
    assert_eq!(f.kv.window_due_at(&trips).unwrap(), None);
    extend(f, &["trips"]);
    let first = f.kv.window_due_at(&trips).unwrap().unwrap();
    assert_eq!(f.kv.window_due_at(&slug("others")).unwrap(), None);
    f.advance(seconds(3));
    extend(f, &["trips"]);
    assert!(f.kv.window_due_at(&trips).unwrap().unwrap() >= first + seconds(2));
    f.advance(seconds(6));
    assert!(f.kv.close_window(&trips, CloseReason::AutoRunOff).unwrap());
    assert_eq!(f.kv.window_due_at(&trips).unwrap(), None);
}

pub fn window_is_identified_by_its_opening_time(f: &Fixture) {
    let (trips, others) = (slug("trips"), slug("others"));
    let since = || f.kv.window_opened_at(&trips).unwrap();
    assert_eq!(since(), None);
    let first = f.kv.extend_windows(&[trips.clone(), others.clone()]).unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(f.kv.extend_windows(std::slice::from_ref(&trips)).unwrap(), first[..1], "it keeps its name");
    assert_eq!(since(), Some(first[0]));
    assert_eq!(f.kv.window_opened_at(&slug("nothing")).unwrap(), None);
    f.advance(seconds(40));
    assert!(since().is_some(), "until it is fired");
    assert!(f.kv.fire_window(&f.job("trips")).unwrap());
    assert_eq!(since(), None);
    assert!(f.kv.window_opened_at(&others).unwrap().is_some(), "the other's goes on");
}

pub fn window_is_due_thirty_seconds_after_its_first_event(f: &Fixture) {
    for _ in 0..10 {
        extend(f, &["trips"]);
        assert_eq!(due(f), [""; 0]);
        f.advance(seconds(3));
    }
    extend(f, &["trips"]);
    assert_eq!(due(f), ["trips"], "no quiet, and 30 s are over");
    extend(f, &["trips"]);
    assert_eq!(due(f), ["trips"], "later events don't put it off");
}

pub fn fired_window_becomes_one_job(f: &Fixture) {
    for _ in 0..20 {
        extend(f, &["trips", "trips"]);
    }
    assert_eq!(f.kv.counts().unwrap().windows, 1);
    f.advance(seconds(7));
    let job = f.job("trips");
    assert!(f.kv.fire_window(&job).unwrap());
    assert_eq!((f.kv.counts().unwrap().windows, f.places()), (0, (1, 0, 0)));
    assert!(!f.kv.fire_window(&f.job("trips")).unwrap());
    assert_eq!(f.shown(&job).as_ref(), Some(&job));
    assert_eq!(f.kv.active(&job.pipeline, 10).unwrap(), std::slice::from_ref(&job));
    assert_eq!(message(&f.claim("a")), job.message());
    f.claims_nothing();
}

pub fn events_after_a_fire_open_a_new_window(f: &Fixture) {
    for round in 0..3 {
        extend(f, &["trips"]);
        f.advance(seconds(3));
        assert_eq!(due(f), [""; 0], "round {round}: its time restarts");
        f.advance(seconds(4));
        assert!(f.kv.fire_window(&f.job("trips")).unwrap(), "round {round}");
    }
    assert_eq!(f.places(), (3, 0, 0));
}

pub fn windows_are_per_pipeline(f: &Fixture) {
    extend(f, &["one", "two"]);
    f.advance(seconds(3));
    extend(f, &["two", "three"]);
    f.advance(seconds(4));
    assert_eq!(due(f), ["one"]);
    f.advance(seconds(3));
    extend(f, &["four"]);
    assert_eq!(due(f).len(), 3);
    assert_eq!(due(f)[0], "one", "the longest due first");
    assert_eq!(f.kv.due_windows(2).unwrap().len(), 2);
    assert!(f.kv.fire_window(&f.job("two")).unwrap());
    let left = due(f);
    assert_eq!(left, ["one", "three"]);
}

pub fn window_closes_without_a_job(f: &Fixture) {
    extend(f, &["trips"]);
    f.advance(seconds(7));
    assert!(f.kv.close_window(&slug("trips"), CloseReason::AutoRunOff).unwrap());
    assert!(!f.kv.close_window(&slug("trips"), CloseReason::AutoRunOff).unwrap());
    assert!(!f.kv.fire_window(&f.job("trips")).unwrap());
    assert_eq!((f.kv.counts().unwrap().windows, f.places()), (0, (0, 0, 0)));
    assert!(!f.kv.close_window(&slug("never-open"), CloseReason::AutoRunOff).unwrap());
}

pub fn no_pipelines_open_no_windows(f: &Fixture) {
    extend(f, &[]);
    f.advance(seconds(60));
    assert_eq!(due(f), [""; 0]);
    let many: Vec<String> = (0..300).map(|n| format!("p{n}")).collect();
    extend(f, &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(f.kv.counts().unwrap().windows, 300);
    assert_eq!(f.kv.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap(), []);
}
