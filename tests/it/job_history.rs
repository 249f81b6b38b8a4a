//! The history of a pipeline's jobs: order, pages, number of reads, and unusual records.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::{NoContext, Timestamp, Uuid};

use lakemill::domain::job::{
    Job, JobId, JobMessage, JobPosition, JobStatus, RunError, RunErrorCode, RunResult, SourceResult,
};
use lakemill::domain::layout::{job_record_key, job_rejects_key};
use lakemill::domain::name::Slug;
use lakemill::pipelines::history::{Page, page, record};
use lakemill::ports::ObjectStore;
use lakemill::ports::job_index::{Coverage, EndedFilter, EndedJob, EndedJobs, JobIndex, NewestEnds, UnindexedPipeline};
use lakemill::ports::jobs::{CancelOutcome, EnqueueOutcome, JobRegistry, QueueCounts};
use lakemill::ports::kv::KvResult;
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::runtime::Clock;

use crate::support::faulty_store::FaultyStore;
use crate::support::memory_store::MemoryStore;

const START_MS: i64 = 1_700_000_000_000;

fn slug() -> Slug {
    Slug::parse("trips").unwrap()
}

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(START_MS).unwrap() + TimeDelta::seconds(second)
}

/// A job id minted at that second.
fn minted(second: i64) -> String {
    let time = at(second);
    let seconds = u64::try_from(time.timestamp()).unwrap();
    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, time.timestamp_subsec_nanos())).to_string()
}

fn queued(id: &str, second: i64) -> Job {
    let mut message = JobMessage::new(slug(), false, "manual", at(second));
    message.job_id = JobId::parse(id).unwrap();
    Job::queued(&message, 3)
}

fn ended(id: &str, second: i64) -> Job {
    let error = RunError::new(RunErrorCode::NoInput, "no source");
    queued(id, second).started("w", 1, 1, at(second + 1)).failed(error, at(second + 2))
}

/// Set by the tests.
struct ManualClock(Mutex<DateTime<Utc>>);

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }

    fn since_boot(&self) -> Duration {
        Duration::ZERO
    }
}

/// A pipeline's records and active jobs.
struct HistoryFixture {
    clock: Arc<ManualClock>,
    store: FaultyStore,
    active: Mutex<Vec<Job>>,
    /// Of an index; empty if there is none.
    indexed: Mutex<Vec<JobPosition>>,
}

impl HistoryFixture {
    fn new() -> Self {
        let clock = Arc::new(ManualClock(Mutex::new(at(0))));
        let store = FaultyStore::new(Arc::new(MemoryStore::new().timed_by(Arc::clone(&clock) as _)));
        Self { clock, store, active: Mutex::default(), indexed: Mutex::default() }
    }

    /// Writes a record at that second.
    fn put(&self, second: i64, key: &str, body: &[u8]) {
        *self.clock.0.lock().unwrap() = at(second);
        self.store.put(Bucket::Pipelines, key, body, &WriteOptions::default()).unwrap();
    }

    fn end(&self, job: &Job, second: i64) {
        let key = job_record_key(&slug(), job.job_id.as_str());
        self.put(second, &key, &serde_json::to_vec(job).unwrap());
    }

    fn page(&self, before: Option<&JobPosition>, limit: usize) -> Page {
        page(&self.store, self, self, &slug(), before, limit).unwrap()
    }

    /// The ids of all pages of `limit` jobs.
    fn pages(&self, limit: usize) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut before = None;
        loop {
            let page = self.page(before.as_ref(), limit);
            pages.push(ids(&page));
            let Some(next) = page.next else { return pages };
            before = Some(next.to_string().parse().unwrap());
        }
    }
}

fn ids(page: &Page) -> Vec<String> {
    page.jobs.iter().map(|job| job.job_id.to_string()).collect()
}

impl JobRegistry for HistoryFixture {
    fn enqueue(&self, _: &Job) -> KvResult<EnqueueOutcome> {
        Ok(EnqueueOutcome::AlreadyActive)
    }

    fn attempts_max(&self) -> KvResult<Option<u32>> {
        Ok(None)
    }

    fn set_attempts_max(&self, _: u32) -> KvResult<()> {
        Ok(())
    }

    fn job(&self, _: &Slug, _: &JobId) -> KvResult<Option<Job>> {
        Ok(None)
    }

    fn active(&self, _: &Slug, limit: usize) -> KvResult<Vec<Job>> {
        Ok(self.active.lock().unwrap().iter().take(limit).cloned().collect())
    }

    fn cancel(&self, _: &Slug, _: &JobId) -> KvResult<CancelOutcome> {
        Ok(CancelOutcome::NotActive)
    }

    fn counts(&self) -> KvResult<QueueCounts> {
        Ok(QueueCounts::default())
    }

    fn oldest_due(&self) -> KvResult<Option<Duration>> {
        Ok(None)
    }

    fn drop_pipeline(&self, _: &Slug) -> KvResult<()> {
        Ok(())
    }

    fn revive_pipeline(&self, _: &Slug) -> KvResult<()> {
        Ok(())
    }
}

impl JobIndex for HistoryFixture {
    fn ended(&self, filter: EndedFilter<'_>, before: Option<&JobPosition>, limit: usize) -> KvResult<EndedJobs> {
        assert_eq!((filter.pipeline, filter.failed_only), (Some(&slug()), false));
        let mut indexed = self.indexed.lock().unwrap().clone();
        let coverage = if indexed.is_empty() { Coverage::Incomplete } else { Coverage::All };
        indexed.sort_unstable_by(|a, b| b.cmp(a));
        let older = indexed.into_iter().filter(|position| before.is_none_or(|before| position < before));
        Ok(EndedJobs { jobs: older.take(limit).map(|position| (slug(), position)).collect(), coverage })
    }

    fn newest_ends(&self, _: &[Slug]) -> KvResult<Vec<NewestEnds>> {
        Ok(Vec::new())
    }

    fn active_pipelines(&self, _: usize) -> KvResult<Vec<Slug>> {
        Ok(Vec::new())
    }

    fn index_ended(&self, _: &[EndedJob]) -> KvResult<()> {
        Ok(())
    }

    fn forget_ended(&self, _: &Slug, _: i64) -> KvResult<()> {
        Ok(())
    }

    fn is_built(&self) -> KvResult<bool> {
        Ok(true)
    }

    fn mark_built(&self) -> KvResult<()> {
        Ok(())
    }

    fn unindexed(&self, _: usize) -> KvResult<Vec<UnindexedPipeline>> {
        Ok(Vec::new())
    }

    fn mark_indexed(&self, _: &UnindexedPipeline) -> KvResult<()> {
        Ok(())
    }
}

#[test]
fn only_records_of_the_page_are_read() {
    let past = HistoryFixture::new();
    let ours: Vec<String> = (0..10_000).map(minted).collect();
    for (second, id) in (0..).zip(&ours) {
        past.end(&ended(id, second), second + 3);
        if second % 100 == 0 {
            past.put(second + 3, &job_rejects_key(&slug(), id), b"PAR1");
        }
    }
    let newest_first: Vec<String> = ours.iter().rev().cloned().collect();
    past.store.reset_counts();
    let first = past.page(None, 20);
    assert_eq!(ids(&first), newest_first[..20]);
    assert_eq!(past.store.gets(), 20);
    let second = past.page(first.next.as_ref(), 30);
    assert_eq!(ids(&second), newest_first[20..50]);
    assert_eq!(past.store.gets(), 50);
}

#[test]
fn pages_come_from_the_index_while_it_has_more_jobs_and_from_a_listing_then() {
    let past = HistoryFixture::new();
    let ours: Vec<String> = (0..50).map(minted).collect();
    for (second, id) in (0..).zip(&ours) {
        past.end(&ended(id, second), second + 3);
    }
    let newest_first: Vec<String> = ours.iter().rev().cloned().collect();
    let position = |id: &String| JobPosition::generated(&JobId::parse(id).unwrap()).unwrap();
    *past.indexed.lock().unwrap() = ours[20..].iter().map(position).collect();
    past.store.reset_counts();
    let first = past.page(None, 20);
    let counts = past.store.counts(Bucket::Pipelines);
    assert_eq!((ids(&first), counts.gets, counts.lists), (newest_first[..20].to_vec(), 20, 0));
    assert_eq!(past.pages(20).concat(), newest_first, "the last page is listed");
    // A record that is gone doesn't shorten a page.
    past.store.delete(Bucket::Pipelines, &[job_record_key(&slug(), &ours[48])], &WriteOptions::default()).unwrap();
    assert_eq!(past.page(None, 3).jobs.len(), 3);
    assert_eq!(past.pages(20).concat().len(), 49);
}

#[test]
fn foreign_ids_are_ordered_by_their_record() {
    let past = HistoryFixture::new();
    // Jobs enqueued at 0, 10, 20 …; every other one by another program, whose jobs wait at least 35 s.
    let ids: Vec<String> =
        (0..20).map(|n| if n % 2 == 0 { minted(n * 10) } else { format!("job-{:02}", 97 - n) }).collect();
    for (n, id) in (0..).zip(&ids) {
        let wait = if n % 2 == 0 { 1 } else { 35 + n };
        past.end(&ended(id, n * 10), n * 10 + wait);
    }
    let expected: Vec<String> = ids.into_iter().rev().collect();
    for limit in [1, 3, 7, 20, 50] {
        assert_eq!(past.pages(limit).concat(), expected, "pages of {limit}");
    }
    past.store.reset_counts();
    past.page(None, 4);
    assert!(past.store.gets() <= 10, "{} records were read to show 4", past.store.gets());
}

#[test]
fn foreign_job_from_the_future_is_ordered_by_its_end() {
    let past = HistoryFixture::new();
    past.end(&ended("tomorrow", 86_400), 5);
    let (before, after) = (minted(1), minted(9));
    past.end(&ended(&before, 1), 4);
    past.end(&ended(&after, 9), 12);
    assert_eq!(past.pages(2).concat(), [after, "tomorrow".into(), before]);
}

#[test]
fn active_jobs_are_merged_and_records_take_precedence() {
    let past = HistoryFixture::new();
    let ids: Vec<String> = (0..5).map(minted).collect();
    past.end(&ended(&ids[0], 0), 2);
    past.end(&ended(&ids[2], 2), 9);
    let waiting = queued(&ids[1], 1);
    let acknowledged_soon = queued(&ids[2], 2).started("w", 1, 1, at(3));
    let foreign = queued("by-hand", 3);
    let running = queued(&ids[4], 4).started("w", 1, 1, at(5));
    *past.active.lock().unwrap() = vec![waiting, acknowledged_soon, foreign, running];
    let page = past.page(None, 10);
    assert_eq!(self::ids(&page), [&ids[4], "by-hand", &ids[2], &ids[1], &ids[0]]);
    let statuses: Vec<JobStatus> = page.jobs.iter().map(|job| job.status).collect();
    let [queued, running, failed] = [JobStatus::Queued, JobStatus::Running, JobStatus::Failed];
    assert_eq!(statuses, [running, queued, failed, queued, failed]);
    assert_eq!(past.pages(2).concat().len(), 5);
    assert_eq!(page.next, None);
}

#[test]
fn malformed_records_are_skipped_and_listed() {
    let past = HistoryFixture::new();
    let good = minted(1);
    past.end(&ended(&good, 1), 2);
    past.put(3, "pipelines/trips/jobs/broken.json", b"{\"job_id\":");
    past.put(4, "pipelines/trips/jobs/anonymous.json", &serde_json::to_vec(&ended("someone", 1)).unwrap());
    past.put(5, "pipelines/trips/jobs/not an id.json", b"{}");
    past.put(6, "pipelines/trips/jobs/notes.txt", b"hello");
    past.put(7, "pipelines/trips-2/jobs/other.json", b"{}");
    let page = past.page(None, 10);
    assert_eq!(ids(&page), [good]);
    let keys: Vec<&str> = page.unreadable.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["pipelines/trips/jobs/anonymous.json", "pipelines/trips/jobs/broken.json"]);
    assert!(page.unreadable[0].1.contains("`someone`"), "{:?}", page.unreadable);
    assert_eq!(past.page(None, 0), Page::default());
}

#[test]
fn pages_omit_the_accounting_of_sources() {
    let past = HistoryFixture::new();
    let id = minted(1);
    let mut result = RunResult::default();
    let sources = vec![SourceResult { source: "a.csv".into(), rows_read: 3, ..SourceResult::default() }];
    result.tables.entry("t".into()).or_default().sources = sources;
    result.tables.entry("t".into()).or_default().rows_written = 3;
    let job = queued(&id, 1).started("w", 1, 1, at(2)).completed(result, at(3));
    past.end(&job, 3);
    let shown = past.page(None, 1).jobs[0].result.clone().unwrap();
    assert_eq!((shown.tables["t"].sources.len(), shown.tables["t"].rows_written), (0, 3));
    assert_eq!(record(&past.store, &slug(), &job.job_id).unwrap(), Some(job));
    assert_eq!(record(&past.store, &slug(), &JobId::parse("none").unwrap()).unwrap(), None);
    past.put(4, "pipelines/trips/jobs/broken.json", b"[]");
    assert!(record(&past.store, &slug(), &JobId::parse("broken").unwrap()).is_err());
}

#[test]
fn cursors_round_trip_and_others_are_rejected() {
    for text in ["1700000000000-job-1_x", "5-0197b2c3-0000-7000-8000-000000000000"] {
        assert_eq!(text.parse::<JobPosition>().unwrap().to_string(), text);
    }
    for bad in ["", "1", "x-job", "1-", "1-a b", "99999999999999999999-a"] {
        assert!(bad.parse::<JobPosition>().is_err(), "{bad}");
    }
}
