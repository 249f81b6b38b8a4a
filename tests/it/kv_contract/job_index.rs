//! The index of ended jobs.

use lakemill::domain::job::{JobId, JobMessage, JobPosition, RunError, RunErrorCode};
use lakemill::domain::limits::ENDED_JOBS_INDEXED_MAX;
use lakemill::domain::name::Slug;
use lakemill::ports::job_index::{Coverage, EndedFilter, EndedJob, NEWEST_ENDS_MAX, NewestEnds};
use lakemill::ports::jobs::ReleaseOutcome;

use super::{Fixture, TTL, slug};

fn all(f: &Fixture) -> Vec<(Slug, JobPosition)> {
    f.kv.ended(EndedFilter::default(), None, 10_000).unwrap().jobs
}

fn of(f: &Fixture, pipeline: &str, failed_only: bool) -> Vec<String> {
    let filter = EndedFilter { pipeline: Some(&slug(pipeline)), failed_only };
    let found = f.kv.ended(filter, None, 10_000).unwrap().jobs;
    assert!(found.iter().all(|(of, _)| *of == slug(pipeline)));
    found.into_iter().map(|(_, position)| position.job_id.to_string()).collect()
}

fn failed(f: &Fixture) -> Vec<Slug> {
    let filter = EndedFilter { failed_only: true, ..EndedFilter::default() };
    f.kv.ended(filter, None, 10_000).unwrap().jobs.into_iter().map(|(slug, _)| slug).collect()
}

fn fail(f: &Fixture, pipeline: &str) -> String {
    let (job, start) = f.run("a", pipeline);
    let error = RunError::new(RunErrorCode::InvalidConfig, "it is bad");
    let ended = f.seen(&start.lease).failed(error, f.now());
    assert_eq!(f.kv.finish(&start.lease, &ended).unwrap(), ReleaseOutcome::Released);
    job.job_id.to_string()
}

fn complete(f: &Fixture, pipeline: &str) -> String {
    let (job, start) = f.run("a", pipeline);
    f.end(&start.lease);
    job.job_id.to_string()
}

fn foreign(pipeline: &str, at_ms: i64, id: &str, failed: bool) -> EndedJob {
    EndedJob { pipeline: slug(pipeline), position: JobPosition { at_ms, job_id: JobId::parse(id).unwrap() }, failed }
}

fn coverage(f: &Fixture, pipeline: Option<&str>) -> Coverage {
    let slug = pipeline.map(slug);
    f.kv.ended(EndedFilter { pipeline: slug.as_ref(), failed_only: false }, None, 1).unwrap().coverage
}

pub fn ended_jobs_are_found_newest_first_by_pipeline_and_outcome(f: &Fixture) {
    assert_eq!(all(f), []);
    let (one, two, three) = (complete(f, "trips"), fail(f, "fares"), fail(f, "trips"));
    let other = f.open().ended(EndedFilter::default(), None, 10).unwrap().jobs;
    let found: Vec<(&str, String)> = other.iter().map(|(slug, at)| (slug.as_str(), at.job_id.to_string())).collect();
    assert_eq!(found, [("trips", three.clone()), ("fares", two.clone()), ("trips", one.clone())]);
    assert_eq!((of(f, "trips", false), of(f, "trips", true)), (vec![three.clone(), one], vec![three]));
    assert_eq!((of(f, "fares", true), failed(f)), (vec![two], vec![slug("trips"), slug("fares")]));
    assert_eq!(of(f, "none", false), [] as [String; 0]);
}

pub fn pages_of_ended_jobs_have_each_once(f: &Fixture) {
    // Several at the same time, of different pipelines, and an id that is the beginning of another.
    let ids = ["a", "a-b", "a_b", "b"];
    let jobs: Vec<EndedJob> = (0..40)
        .map(|n| foreign(["p", "q", "r"][n % 3], (n / 8) as i64, &format!("{}-{n}", ids[n % 4]), n % 2 == 0))
        .collect();
    f.kv.index_ended(&jobs).unwrap();
    f.kv.index_ended(&jobs[..5]).unwrap();
    for (filter, count) in [
        (EndedFilter::default(), 40),
        (EndedFilter { failed_only: true, ..EndedFilter::default() }, 20),
        (EndedFilter { pipeline: Some(&slug("q")), failed_only: false }, 13),
    ] {
        let whole = f.kv.ended(filter, None, 100).unwrap().jobs;
        assert_eq!(whole.len(), count);
        assert!(whole.is_sorted_by(|a, b| a.1 > b.1), "{whole:?}");
        let (mut paged, mut before) = (Vec::new(), None);
        loop {
            let page = f.kv.ended(filter, before.as_ref(), 3).unwrap().jobs;
            let Some((_, last)) = page.last() else { break };
            before = Some(last.clone());
            paged.extend(page);
        }
        assert_eq!(paged, whole);
    }
    assert_eq!(f.kv.ended(EndedFilter::default(), None, 0).unwrap().jobs, []);
}

pub fn dropped_pipeline_leaves_the_index_and_late_ends_stay_out(f: &Fixture) {
    complete(f, "trips");
    fail(f, "trips");
    fail(f, "fares");
    let (_, running) = f.run("a", "trips");
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    f.end(&running.lease);
    assert_eq!(of(f, "trips", false), [] as [String; 0]);
    assert_eq!((all(f).len(), failed(f)), (1, vec![slug("fares")]));
    let many: Vec<EndedJob> = (0..2_500).map(|n| foreign("fares", n, &format!("j{n}"), n % 2 == 0)).collect();
    f.kv.index_ended(&many).unwrap();
    f.kv.drop_pipeline(&slug("fares")).unwrap();
    assert_eq!((all(f), failed(f)), (vec![], vec![]));
}

pub fn old_jobs_of_a_pipeline_are_forgotten(f: &Fixture) {
    let many: Vec<EndedJob> = (0..1_200).map(|n| foreign("trips", n, &format!("j{n}"), n % 2 == 0)).collect();
    f.kv.index_ended(&many).unwrap();
    f.kv.index_ended(&[foreign("fares", 5, "k", true)]).unwrap();
    f.kv.forget_ended(&slug("trips"), 1_190).unwrap();
    assert_eq!((of(f, "trips", false).len(), of(f, "trips", true).len()), (10, 5));
    assert_eq!((all(f).len(), failed(f).len()), (11, 6));
    f.kv.forget_ended(&slug("trips"), 1_190).unwrap();
    f.kv.forget_ended(&slug("none"), i64::MAX).unwrap();
    assert_eq!((all(f).len(), of(f, "trips", false)[9].as_str()), (11, "j1190"));
}

pub fn dry_runs_are_not_indexed(f: &Fixture) {
    let message = JobMessage::new(slug("trips"), false, "dry_run", f.now());
    f.kv.enqueue(&lakemill::domain::job::Job::queued(&message, 3)).unwrap();
    let start = f.run_next("a");
    f.end(&start.lease);
    assert_eq!(all(f), []);
}

pub fn index_is_complete_once_built_and_without_requests(f: &Fixture) {
    assert!(!f.kv.is_built().unwrap());
    assert_eq!(coverage(f, None), Coverage::Incomplete);
    f.kv.mark_built().unwrap();
    assert!(f.open().is_built().unwrap());
    assert_eq!((coverage(f, None), coverage(f, Some("trips"))), (Coverage::All, Coverage::All));

    f.kv.revive_pipeline(&slug("trips")).unwrap();
    assert_eq!((coverage(f, None), coverage(f, Some("trips"))), (Coverage::Incomplete, Coverage::Incomplete));
    assert_eq!(coverage(f, Some("fares")), Coverage::All);
    let requested = f.kv.unindexed(10).unwrap();
    assert_eq!(requested.iter().map(|one| &one.pipeline).collect::<Vec<_>>(), [&slug("trips")]);
    f.kv.revive_pipeline(&slug("fares")).unwrap();
    f.kv.revive_pipeline(&slug("trips")).unwrap();
    f.kv.mark_indexed(&requested[0]).unwrap();
    assert_eq!(f.kv.unindexed(10).unwrap().len(), 2, "it was requested again meanwhile");
    assert_eq!(f.kv.unindexed(1).unwrap().len(), 1);
    for one in f.kv.unindexed(10).unwrap() {
        f.kv.mark_indexed(&one).unwrap();
    }
    assert_eq!(coverage(f, None), Coverage::All);
    f.kv.revive_pipeline(&slug("trips")).unwrap();
    f.kv.drop_pipeline(&slug("trips")).unwrap();
    assert_eq!((f.kv.unindexed(10).unwrap(), coverage(f, None)), (vec![], Coverage::All));
    f.backend.lose_data();
    assert!(!f.kv.is_built().unwrap());
}

pub fn oldest_jobs_leave_a_full_index(f: &Fixture) {
    f.kv.mark_built().unwrap();
    let job = |n: i64| foreign(["p", "q"][n as usize % 2], n, &format!("j{n}"), n % 4 == 0);
    let jobs: Vec<EndedJob> = (0..ENDED_JOBS_INDEXED_MAX as i64).map(job).collect();
    for some in jobs.chunks(10_000) {
        f.kv.index_ended(some).unwrap();
    }
    assert_eq!(coverage(f, None), Coverage::All);
    f.kv.index_ended(&[job(ENDED_JOBS_INDEXED_MAX as i64), job(ENDED_JOBS_INDEXED_MAX as i64 + 1)]).unwrap();
    assert_eq!(coverage(f, None), Coverage::Since(2));
    let p = slug("p");
    let before = |at_ms, filter| f.kv.ended(filter, Some(&foreign("p", at_ms, "0", false).position), 10).unwrap().jobs;
    assert_eq!(before(4, EndedFilter::default()).len(), 2, "jobs 2 and 3");
    assert_eq!(before(4, EndedFilter { pipeline: Some(&p), failed_only: false }).len(), 1);
    assert_eq!(before(4, EndedFilter { failed_only: true, ..EndedFilter::default() }), []);
    fail(f, "trips");
    assert_eq!(coverage(f, None), Coverage::Since(3));
}

pub fn pipelines_with_active_jobs_are_found(f: &Fixture) {
    assert_eq!(f.kv.active_pipelines(10).unwrap(), []);
    f.enqueue("trips");
    f.backend.add_raw(&[(b"job_id", b"by-hand"), (b"pipeline", b"foreign")]);
    f.enqueue("fares");
    assert_eq!(f.kv.active_pipelines(10).unwrap(), ["fares", "foreign", "trips"].map(slug));
    assert_eq!(f.kv.active_pipelines(2).unwrap().len(), 2);
    for _ in 0..3 {
        let start = f.run_next("a");
        f.end(&start.lease);
    }
    assert_eq!(f.kv.active_pipelines(10).unwrap(), []);
    let hold = f.kv.lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap();
    f.defer("trips");
    assert_eq!(f.kv.active_pipelines(10).unwrap(), [slug("trips")]);
    f.kv.release(&hold).unwrap();
}

pub fn newest_ends_of_pipelines_are_found(f: &Fixture) {
    let jobs = |pipeline: &str, from: i64, count: i64, failed: bool| {
        let job = |at_ms| foreign(pipeline, at_ms, &format!("job-{at_ms}"), failed);
        f.kv.index_ended(&(from..from + count).map(job).collect::<Vec<_>>()).unwrap();
    };
    jobs("good", 5, 1, true);
    jobs("good", 7, 2, false);
    // More failures than one page.
    jobs("bad", 1_000, 250, true);
    jobs("bad", 999, 1, false);
    jobs("only-failed", 3, 1, true);
    let many = i64::try_from(NEWEST_ENDS_MAX).unwrap();
    jobs("long-failed", 10, many, true);
    jobs("long-failed", 9, 1, false);
    let ends = |completed_ms, failed_ms| NewestEnds { completed_ms, failed_ms };
    let names = ["none", "good", "bad", "only-failed", "long-failed"].map(slug);
    assert_eq!(
        f.kv.newest_ends(&names).unwrap(),
        [
            ends(None, None),
            ends(Some(8), Some(5)),
            ends(Some(999), Some(1_249)),
            ends(None, Some(3)),
            ends(None, Some(many + 9)),
        ]
    );
    assert_eq!(f.kv.newest_ends(&[]).unwrap(), []);
    let started = complete(f, "trips");
    let [found] = f.kv.newest_ends(&[slug("trips")]).unwrap()[..] else { panic!("one pipeline was asked for") };
    assert_eq!((found.completed_ms, found.failed_ms), (Some(position_ms(f, "trips", &started)), None));
}

fn position_ms(f: &Fixture, pipeline: &str, id: &str) -> i64 {
    let found = all(f).into_iter().find(|(of, at)| *of == slug(pipeline) && at.job_id.as_str() == id);
    found.unwrap().1.at_ms
}
