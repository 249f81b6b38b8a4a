//! Pauses of pipelines.

use lakemill::domain::job::{AttemptCost, WaitReason};
use lakemill::domain::pause::Pause;
use lakemill::ports::pauses::PausesInForce;

use super::{Fixture, seconds, slug};

fn pause(f: &Fixture, reason: &str) -> Pause {
    // Stores keep milliseconds.
    let ms = f.now().timestamp_millis();
    Pause { since: chrono::DateTime::from_timestamp_millis(ms).unwrap(), reason: reason.to_owned() }
}

/// Jobs that are due in the stream after one step.
fn released(f: &Fixture) -> usize {
    f.kv.release_due(100).unwrap()
}

pub fn pauses_are_listed_replaced_and_ended(f: &Fixture) {
    let (a, b, other) = (slug("a"), slug("b"), f.open());
    assert_eq!(other.pauses().unwrap(), PausesInForce::default());
    assert!(!f.kv.resume(Some(&a)).unwrap() && !f.kv.resume(None).unwrap());
    let (first, second, all) = (pause(f, "moving"), pause(f, "moving; ask Ann 10:00"), pause(f, ""));
    f.kv.pause(Some(&b), &first).unwrap();
    f.kv.pause(Some(&a), &first).unwrap();
    f.kv.pause(Some(&a), &second).unwrap();
    let listed = vec![(a.clone(), second.clone()), (b.clone(), first.clone())];
    assert_eq!(other.pauses().unwrap(), PausesInForce { all: None, pipelines: listed.clone() });
    assert_eq!((other.paused(Some(&a)).unwrap(), other.paused(None).unwrap()), (Some(second.clone()), None));
    assert_eq!(other.paused(Some(&slug("c"))).unwrap(), None);

    f.kv.pause(None, &all).unwrap();
    assert_eq!(other.pauses().unwrap(), PausesInForce { all: Some(all.clone()), pipelines: listed });
    assert_eq!(other.paused(Some(&slug("c"))).unwrap(), Some(all.clone()));
    assert_eq!((other.paused(Some(&a)).unwrap(), other.paused(None).unwrap()), (Some(second), Some(all)));
    assert!(other.resume(None).unwrap() && other.resume(Some(&a)).unwrap());
    assert_eq!(f.kv.pauses().unwrap(), PausesInForce { all: None, pipelines: vec![(b, first)] });
}

pub fn windows_of_paused_pipelines_stay_open_and_are_not_due(f: &Fixture) {
    let slugs: Vec<_> = (0..30).map(|n| slug(&format!("p{n}"))).collect();
    f.kv.extend_windows(&slugs).unwrap();
    for paused in &slugs[..25] {
        f.kv.pause(Some(paused), &pause(f, "")).unwrap();
    }
    f.advance(seconds(40));
    // However many paused ones come first.
    let mut due = f.kv.due_windows(4).unwrap();
    assert_eq!(due.len(), 4);
    assert!(due.iter().all(|due| slugs[25..].contains(due)), "{due:?}");
    f.kv.resume(Some(&slugs[3])).unwrap();
    due = f.kv.due_windows(100).unwrap();
    assert_eq!((due.len(), due.contains(&slugs[3])), (6, true));
    f.kv.pause(None, &pause(f, "")).unwrap();
    assert_eq!(f.kv.due_windows(100).unwrap(), []);
    assert_eq!(f.kv.counts().unwrap().windows, 30);
    f.kv.resume(None).unwrap();
    assert_eq!(f.kv.due_windows(100).unwrap().len(), 6);
}

pub fn jobs_that_wait_for_the_end_of_a_pause_are_due_when_it_ends(f: &Fixture) {
    let trips = slug("trips");
    f.kv.pause(Some(&trips), &pause(f, "")).unwrap();
    let (waiting, start) = f.run("w", "trips");
    f.requeue_for(&start.lease, seconds(30), WaitReason::Paused, AttemptCost::Zero);
    let (retried, start) = f.run("w", "trips");
    f.requeue_for(&start.lease, seconds(30), WaitReason::Retry, AttemptCost::One);
    let (other, start) = f.run("w", "other");
    f.requeue_for(&start.lease, seconds(30), WaitReason::Paused, AttemptCost::Zero);
    assert_eq!(f.shown(&waiting).unwrap().reason, Some(WaitReason::Paused));
    assert_eq!(released(f), 0);
    assert!(f.open().resume(Some(&trips)).unwrap());
    assert_eq!(released(f), 1);
    let shown = f.shown(&waiting).unwrap();
    assert_eq!((shown.reason, shown.attempt), (None, 0), "it cost no attempt");
    assert_eq!(f.shown(&retried).unwrap().reason, Some(WaitReason::Retry));
    assert_eq!(f.shown(&other).unwrap().reason, Some(WaitReason::Paused), "of another pipeline");
}

pub fn pause_ends_with_its_pipeline(f: &Fixture) {
    let (trips, fares) = (slug("trips"), slug("fares"));
    for paused in [Some(&trips), Some(&fares), None] {
        f.kv.pause(paused, &pause(f, "")).unwrap();
    }
    f.kv.drop_pipeline(&trips).unwrap();
    let found = f.kv.pauses().unwrap();
    assert_eq!(found.pipelines.into_iter().map(|(slug, _)| slug).collect::<Vec<_>>(), [fares]);
    assert!(found.all.is_some());
}
