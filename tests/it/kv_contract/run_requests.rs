//! Runs that comparisons requested.

use lakemill::domain::job::ChangedKeys;
use lakemill::domain::pause::Pause;

use super::{Fixture, message, seconds, slug};

fn listed(f: &Fixture) -> Vec<String> {
    f.kv.requested_runs(10).unwrap().iter().map(ToString::to_string).collect()
}

pub fn requested_run_becomes_one_job_that_checks_all_keys(f: &Fixture) {
    assert!(!f.kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap(), "nothing was requested");
    f.kv.request_runs(&[slug("trips")]).unwrap();
    f.open().request_runs(&[slug("trips")]).unwrap();
    assert_eq!((f.kv.counts().unwrap().requested, f.places()), (1, (0, 0, 0)));
    assert_eq!(listed(f), [""; 0], "comparisons of other workers may follow");
    assert!(!f.kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap());
    f.advance(seconds(7));
    assert_eq!((listed(f), f.kv.is_run_requested(&slug("trips")).unwrap()), (vec!["trips".to_owned()], true));
    let job = f.job_by("auto", "trips");
    assert!(f.kv.enqueue_requested(&job).unwrap());
    assert!(!f.kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap());
    assert_eq!((f.kv.counts().unwrap().requested, f.places()), (0, (1, 0, 0)));
    assert_eq!(f.shown(&job).as_ref(), Some(&job));
    assert_eq!(f.kv.changed_keys(&job.job_id).unwrap(), ChangedKeys::All);
    assert_eq!(message(&f.claim("a")), job.message());
}

pub fn requests_are_listed_in_their_order_without_paused_pipelines(f: &Fixture) {
    f.kv.request_runs(&[]).unwrap();
    assert_eq!(listed(f), [""; 0]);
    for name in ["c", "a", "b"] {
        f.kv.request_runs(&[slug(name)]).unwrap();
        f.advance(seconds(1));
    }
    f.kv.request_runs(&[slug("c")]).unwrap();
    f.advance(seconds(7));
    assert_eq!(listed(f), ["c", "a", "b"], "one that is there keeps its position");
    assert_eq!(f.kv.requested_runs(2).unwrap(), [slug("c"), slug("a")]);
    let pause = Pause { since: f.now(), reason: String::new() };
    f.kv.pause(Some(&slug("c")), &pause).unwrap();
    assert_eq!(listed(f), ["a", "b"]);
    f.kv.pause(None, &pause).unwrap();
    assert_eq!((listed(f), f.kv.counts().unwrap().requested), (Vec::<String>::new(), 3));
    f.kv.resume(None).unwrap();
    f.kv.resume(Some(&slug("c"))).unwrap();
    let many: Vec<_> = (0..2_500).map(|n| slug(&format!("p{n}"))).collect();
    f.kv.request_runs(&many).unwrap();
    assert_eq!(f.kv.counts().unwrap().requested, 2_503);
    f.advance(seconds(7));
    assert_eq!(listed(f)[..3], ["c", "a", "b"]);
}

pub fn request_is_withdrawn_once(f: &Fixture) {
    f.kv.request_runs(&[slug("trips"), slug("other")]).unwrap();
    f.advance(seconds(7));
    assert!(f.kv.withdraw_request(&slug("trips")).unwrap());
    assert!(!f.kv.withdraw_request(&slug("trips")).unwrap());
    assert!(!f.kv.is_run_requested(&slug("trips")).unwrap());
    assert_eq!(listed(f), ["other"]);
}

pub fn request_ends_with_its_pipeline(f: &Fixture) {
    f.kv.request_runs(&[slug("trips"), slug("other")]).unwrap();
    f.advance(seconds(7));
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    assert_eq!(listed(f), ["other"]);
    assert!(!f.kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap());
}

pub fn one_of_many_workers_enqueues_a_requested_run(f: &Fixture) {
    f.kv.request_runs(&[slug("trips")]).unwrap();
    f.advance(seconds(7));
    let enqueued: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let kv = f.open();
                scope.spawn(move || usize::from(kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap()))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!((enqueued, f.places()), (1, (1, 0, 0)));
}

pub fn window_of_the_pipeline_takes_its_request(f: &Fixture) {
    let trips = slug("trips");
    let change = || drop(f.kv.record_changes(&[(trips.clone(), ["a.csv"].into_iter().collect())]).unwrap());
    f.kv.request_runs(std::slice::from_ref(&trips)).unwrap();
    f.advance(seconds(7));
    change();
    assert_eq!(listed(f), [""; 0]);
    assert!(!f.kv.enqueue_requested(&f.job_by("auto", "trips")).unwrap());
    f.advance(seconds(7));
    let job = f.job_by("auto", "trips");
    assert!(f.kv.fire_window(&job).unwrap());
    assert_eq!((f.kv.counts().unwrap().requested, f.places()), (0, (1, 0, 0)), "one job for both");
    assert_eq!(f.kv.changed_keys(&job.job_id).unwrap(), ChangedKeys::All);
    // The next window has its keys only.
    change();
    f.advance(seconds(7));
    let job = f.job_by("auto", "trips");
    assert!(f.kv.fire_window(&job).unwrap());
    assert_eq!(f.kv.changed_keys(&job.job_id).unwrap(), ["a.csv"].into_iter().collect());
}
