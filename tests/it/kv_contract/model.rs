//! Random steps of several consumers, checked against a small model of the queue.
//!
//! The store's time advances only in steps of 10 s. Idle times, which a server measures, end at least 4 s away from a
//! multiple of 10 s.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use lakemill::domain::job::{AttemptCost, ChangedKeys, ClaimOrder, Job, JobStatus, WaitReason};
use lakemill::ports::jobs::{
    CancelOutcome, ClaimLimits, Entry, HeartbeatReply, JobLease, PipelineLock, PublishReply, ReleaseOutcome,
    StartOutcome,
};

use super::{Fixture, IMMEDIATELY, completed, failure, message, seconds, slug, start_from};

const CASES: u32 = 16;
const STEPS_MAX: usize = 70;
const PIPELINES: [&str; 2] = ["one", "two"];
const TTL_S: i64 = 65;
const IDLE_S: i64 = 125;
const DEFER_S_MAX: i64 = 30;
/// Rounds within which all jobs must end once no new ones arrive.
const DRAIN_ROUNDS_MAX: usize = 200;

/// One step. A number picks one of the existing items.
#[derive(Debug, Clone)]
enum Step {
    Enqueue(usize),
    EnqueueAgain(usize),
    Claim(usize, usize),
    Reclaim(usize),
    Start(usize),
    Heartbeat(usize),
    Publish(usize),
    PutBack(usize, bool, bool),
    End(usize),
    Cancel(usize),
    Hold(usize),
    Release(usize),
    ReleaseDue,
    Extend(usize),
    Fire(usize),
    Pass(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0..1_000usize;
    prop_oneof![
        4 => n().prop_map(Step::Enqueue),
        1 => n().prop_map(Step::EnqueueAgain),
        6 => (n(), 1..3usize).prop_map(|(c, count)| Step::Claim(c, count)),
        2 => n().prop_map(Step::Reclaim),
        9 => n().prop_map(Step::Start),
        3 => n().prop_map(Step::Heartbeat),
        2 => n().prop_map(Step::Publish),
        4 => (n(), any::<bool>(), any::<bool>()).prop_map(|(h, long, free)| Step::PutBack(h, long, free)),
        4 => n().prop_map(Step::End),
        2 => n().prop_map(Step::Cancel),
        1 => n().prop_map(Step::Hold),
        1 => n().prop_map(Step::Release),
        5 => Just(Step::ReleaseDue),
        1 => n().prop_map(Step::Extend),
        2 => n().prop_map(Step::Fire),
        6 => prop_oneof![3 => Just(1i64), 2 => 2..5i64, 2 => 7..14i64].prop_map(|tens| Step::Pass(tens * 10)),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Location {
    Stream,
    WaitReason { due: i64, deferred: bool },
    Ended,
}

/// A job in the model.
#[derive(Debug)]
struct Known {
    job: Job,
    keys: ChangedKeys,
    place: Location,
    attempts: u32,
    starts: u32,
    lost: u32,
    running: bool,
    cancel: bool,
    publishing: bool,
}

/// A stream entry: its job, its consumer, and its pending time.
#[derive(Debug)]
struct InStream {
    job: usize,
    pending: Option<(usize, i64)>,
}

/// A lock: its token, job and expiry.
#[derive(Debug, Clone)]
struct Lock {
    token: String,
    job: Option<usize>,
    expires: i64,
}

#[derive(Default)]
struct Model {
    now: i64,
    jobs: Vec<Known>,
    /// In order; an entry that hasn't been claimed yet has no known id.
    stream: Vec<InStream>,
    order: ClaimOrder,
    /// All claims so far: consumer, entry, job.
    claims: Vec<(usize, Entry, usize)>,
    /// All runs so far.
    runs: Vec<(JobLease, usize)>,
    holds: Vec<PipelineLock>,
    locks: BTreeMap<&'static str, Lock>,
    fences: BTreeMap<&'static str, u64>,
    /// First and due time.
    windows: BTreeMap<&'static str, (i64, i64)>,
    /// The changed keys for the next window's job.
    changed: BTreeMap<&'static str, ChangedKeys>,
}

fn name(consumer: usize) -> String {
    format!("c{}", consumer % 3)
}

fn pipeline(n: usize) -> &'static str {
    PIPELINES[n % PIPELINES.len()]
}

impl Model {
    fn lock(&self, pipeline: &str) -> Option<&Lock> {
        self.locks.get(pipeline).filter(|lock| lock.expires > self.now)
    }

    fn is_held(&self, lease: &JobLease) -> bool {
        self.lock(lease.pipeline.as_str()).is_some_and(|lock| lock.token == lease.token)
    }

    fn pipeline_of(&self, job: usize) -> &'static str {
        PIPELINES.into_iter().find(|p| *p == self.jobs[job].job.pipeline.as_str()).unwrap()
    }

    fn job_of(&self, entry: &Entry) -> usize {
        let id = message(entry).job_id;
        self.jobs.iter().position(|known| known.job.job_id == id).unwrap()
    }

    fn add(&mut self, job: Job, keys: ChangedKeys) {
        self.jobs.push(Known {
            job,
            keys,
            place: Location::Stream,
            attempts: 0,
            starts: 0,
            lost: 0,
            running: false,
            cancel: false,
            publishing: false,
        });
        self.stream.push(InStream { job: self.jobs.len() - 1, pending: None });
    }

    fn leaves_the_stream(&mut self, job: usize) {
        self.stream.retain(|entry| entry.job != job);
    }

    fn rises(&mut self, pipeline: &'static str, fence: u64) {
        let last = self.fences.insert(pipeline, fence).unwrap_or(0);
        assert!(fence > last, "fence {fence} after {last}");
    }

    fn enqueue(&mut self, f: &Fixture, n: usize) {
        // Jobs of one pipeline are enqueued at increasing times.
        let mut job = f.job_by(if n.is_multiple_of(3) { "manual" } else { "auto" }, pipeline(n));
        job.enqueued_at += chrono::TimeDelta::milliseconds(self.jobs.len() as i64);
        assert_eq!(f.kv.enqueue(&job).unwrap(), lakemill::ports::jobs::EnqueueOutcome::Queued);
        self.add(job, ChangedKeys::All);
    }

    /// How many entries were claimed.
    fn claim(&mut self, f: &Fixture, consumer: usize, count: usize) -> usize {
        let mut expected = Vec::new();
        while expected.len() < count {
            let next = match (self.head(false, &expected), self.head(true, &expected)) {
                (None, None) => break,
                (Some(one), None) | (None, Some(one)) => {
                    self.order.reset();
                    one
                }
                (Some(manual), Some(automatic)) => {
                    let position = |job| self.stream.iter().position(|e| e.job == job);
                    let is_older = position(automatic) < position(manual);
                    if self.order.is_automatic_next(is_older) { automatic } else { manual }
                }
            };
            expected.push(next);
        }
        let entries = f.kv.claim(&name(consumer), ClaimLimits::any(count), IMMEDIATELY).unwrap();
        let found: Vec<usize> = entries.iter().map(|entry| self.job_of(entry)).collect();
        assert_eq!(found, expected);
        self.record_delivery(consumer, entries);
        found.len()
    }

    /// The oldest queued job of a kind, of a pipeline without any that is taken. Defers jobs of locked pipelines.
    fn head(&mut self, automatic: bool, taken: &[usize]) -> Option<usize> {
        loop {
            let is_of_kind = |e: &&InStream| {
                let known = &self.jobs[e.job];
                (known.job.message().is_automatic() && !known.cancel) == automatic
            };
            let is_taken = |e: &InStream| taken.iter().any(|job| self.pipeline_of(*job) == self.pipeline_of(e.job));
            let mut queued = self.stream.iter().filter(|e| e.pending.is_none() && !is_taken(e));
            let job = queued.find(is_of_kind)?.job;
            match self.lock(self.pipeline_of(job)) {
                Some(lock) if lock.job != Some(job) => self.defers(job, lock.expires - self.now),
                Some(_) | None => return Some(job),
            }
        }
    }

    /// A job waits for a lock that lasts for some time.
    fn defers(&mut self, job: usize, lock_left: i64) {
        self.leaves_the_stream(job);
        let due = self.now + (lock_left + 1).min(DEFER_S_MAX);
        self.jobs[job].place = Location::WaitReason { due, deferred: true };
    }

    fn reclaim(&mut self, f: &Fixture, consumer: usize) {
        let idle = |e: &&InStream| e.pending.is_some_and(|(_, since)| self.now - since >= IDLE_S);
        let mut expected: Vec<usize> = self.stream.iter().filter(idle).map(|e| e.job).collect();
        let entries = f.kv.reclaim(&name(consumer), 1_000, Duration::from_secs(IDLE_S.unsigned_abs())).unwrap();
        let mut found: Vec<usize> = entries.iter().map(|entry| self.job_of(entry)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        self.record_delivery(consumer, entries);
    }

    fn record_delivery(&mut self, consumer: usize, entries: Vec<Entry>) {
        for entry in entries {
            let job = self.job_of(&entry);
            let now = self.now;
            let place = self.stream.iter_mut().find(|e| e.job == job).unwrap();
            place.pending = Some((consumer % 3, now));
            self.claims.push((consumer % 3, entry, job));
        }
    }

    /// The claim is of the job's current entry, and for this consumer.
    fn is_pending(&self, claim: usize) -> bool {
        let (consumer, entry, job) = &self.claims[claim];
        let newest = self.claims.iter().rev().find(|(.., other)| other == job).unwrap();
        newest.1.id == entry.id
            && self.stream.iter().any(|e| e.job == *job && e.pending.is_some_and(|(for_whom, _)| for_whom == *consumer))
    }

    fn start(&mut self, f: &Fixture, n: usize) {
        if self.claims.is_empty() {
            return;
        }
        // Picks late claims more often than early ones, which are stale.
        let claim = self.claims.len() - 1 - (n % self.claims.len()) * (n % 3) / 2;
        let (consumer, entry, job) = self.claims[claim].clone();
        let asked = message(&entry);
        let ttl = Duration::from_secs(TTL_S.unsigned_abs());
        let started = start_from(&*f.kv, &name(consumer), &entry.id, &asked, ttl, 0);
        let pipeline = self.pipeline_of(job);
        if !self.is_pending(claim) {
            assert_eq!(started, StartOutcome::NotClaimed);
            return;
        }
        let now = self.now;
        if let Some(lock) = self.lock(pipeline).cloned() {
            if lock.job == Some(job) {
                assert_eq!(started, StartOutcome::RunningElsewhere);
                return;
            }
            assert!(matches!(started, StartOutcome::Deferred { .. }), "{started:?}");
            self.defers(job, lock.expires - now);
            self.jobs[job].publishing = false;
            return;
        }
        let run = super::running(started);
        self.rises(pipeline, run.lease.fence);
        let lock = Lock { token: run.lease.token.clone(), job: Some(job), expires: now + TTL_S };
        self.locks.insert(pipeline, lock);
        self.stream.iter_mut().find(|e| e.job == job).unwrap().pending = Some((consumer, now));
        let known = &mut self.jobs[job];
        known.attempts += 1;
        known.starts += 1;
        known.lost += u32::from(known.running);
        (known.running, known.publishing) = (true, false);
        assert_eq!((run.attempt, run.lost_starts, run.cancelled), (known.attempts, known.lost, known.cancel));
        assert!(run.attempt <= known.starts);
        self.runs.push((run.lease, job));
        let queued = self.stream.iter().filter(|e| e.pending.is_none()).map(|e| e.job);
        let others: Vec<usize> = queued.filter(|other| self.pipeline_of(*other) == pipeline).collect();
        others.into_iter().for_each(|other| self.defers(other, TTL_S));
    }

    fn pick_run(&self, n: usize) -> Option<(JobLease, usize)> {
        let back = (n % 5).min(self.runs.len().checked_sub(1)?);
        self.runs.get(self.runs.len() - 1 - back).cloned()
    }

    fn heartbeat(&mut self, f: &Fixture, n: usize) {
        let Some((lease, job)) = self.pick_run(n) else { return };
        let beat = f.kv.heartbeat(&lease, Duration::from_secs(TTL_S.unsigned_abs())).unwrap();
        if !self.is_held(&lease) {
            assert_eq!(beat, HeartbeatReply::Lost);
            return;
        }
        assert_eq!(beat, HeartbeatReply::Held { cancelled: self.jobs[job].cancel });
        let now = self.now;
        let consumer = lease.consumer[1..].parse().unwrap();
        self.locks.get_mut(self.pipeline_of(job)).unwrap().expires = now + TTL_S;
        self.stream.iter_mut().find(|e| e.job == job).unwrap().pending = Some((consumer, now));
    }

    fn publish(&mut self, f: &Fixture, n: usize) {
        let Some((lease, job)) = self.pick_run(n) else { return };
        let expected = match (self.is_held(&lease), self.jobs[job].cancel) {
            (false, _) => PublishReply::Lost,
            (true, true) => PublishReply::Cancelled,
            (true, false) => PublishReply::Begun,
        };
        assert_eq!(f.kv.begin_publishing(&lease).unwrap(), expected);
        self.jobs[job].publishing |= expected == PublishReply::Begun;
    }

    fn requeue(&mut self, f: &Fixture, n: usize, long: bool, free: bool) {
        let Some((lease, job)) = self.pick_run(n) else { return };
        let delay = if long { 35 } else { 15 };
        let cost = if free { AttemptCost::Zero } else { AttemptCost::One };
        let requeued = self.jobs[job].job.clone().waiting(WaitReason::Retry, f.now(), Some(failure()));
        let delayed = Duration::from_secs(delay);
        let wait = lakemill::ports::jobs::Requeue { job: &requeued, delay: delayed, reason: WaitReason::Retry, cost };
        let done = f.kv.requeue(&lease, &wait).unwrap();
        if !self.is_held(&lease) {
            assert_eq!(done, ReleaseOutcome::Lost);
            return;
        }
        assert_eq!(done, ReleaseOutcome::Released);
        self.leaves_the_stream(job);
        let due = self.now + delay.cast_signed();
        let known = &mut self.jobs[job];
        known.place = Location::WaitReason { due, deferred: false };
        (known.running, known.publishing) = (false, false);
        known.attempts -= u32::from(free);
        self.released(f, self.pipeline_of(job));
    }

    fn end(&mut self, f: &Fixture, n: usize) {
        let Some((lease, job)) = self.pick_run(n) else { return };
        let completes = !n.is_multiple_of(4);
        let end = match completes {
            true => completed(&self.jobs[job].job, f.now()),
            false => self.jobs[job].job.clone().failed(failure(), f.now()),
        };
        let done = f.kv.finish(&lease, &end).unwrap();
        if !self.is_held(&lease) {
            assert_eq!(done, ReleaseOutcome::Lost);
            return;
        }
        assert_eq!(done, ReleaseOutcome::Released);
        self.leaves_the_stream(job);
        (self.jobs[job].place, self.jobs[job].keys) = (Location::Ended, ChangedKeys::All);
        let pipeline = self.pipeline_of(job);
        if !completes {
            self.changed.insert(pipeline, ChangedKeys::All);
            let others = self.jobs.iter_mut().filter(|known| known.job.pipeline.as_str() == pipeline);
            others.for_each(|known| known.keys = ChangedKeys::All);
        }
        self.released(f, pipeline);
    }

    /// The lock is free, and the longest deferred job became due: at most one job, and exactly one if any wasn't due
    /// before.
    fn released(&mut self, f: &Fixture, pipeline: &'static str) {
        self.locks.remove(pipeline);
        let now = self.now;
        let is_due = |known: &Known| matches!(known.place, Location::WaitReason { due, .. } if due <= now);
        let shown_due = |known: &Known| f.shown(&known.job).unwrap().not_before.is_some_and(|at| at <= f.now());
        let of_pipeline = |known: &&mut Known| {
            known.job.pipeline.as_str() == pipeline
                && matches!(known.place, Location::WaitReason { deferred: true, .. })
        };
        let mut deferred: Vec<&mut Known> = self.jobs.iter_mut().filter(of_pipeline).collect();
        if deferred.is_empty() {
            return;
        }
        let before = deferred.iter().filter(|known| is_due(known)).count();
        let woken: Vec<usize> =
            (0..deferred.len()).filter(|n| !is_due(deferred[*n]) && shown_due(deferred[*n])).collect();
        assert!(woken.len() <= 1 && before + woken.len() >= 1, "{} woken, {before} due before", woken.len());
        let is_automatic = |known: &Known| known.job.message().is_automatic();
        assert!(woken.iter().all(|n| !is_automatic(deferred[*n]) || deferred.iter().all(|known| is_automatic(known))));
        for n in woken {
            deferred[n].place = Location::WaitReason { due: now, deferred: true };
        }
    }

    fn cancel(&mut self, f: &Fixture, n: usize) {
        if self.jobs.is_empty() {
            return;
        }
        let now = self.now;
        let n = n % self.jobs.len();
        let known = &mut self.jobs[n];
        let expected = match known.place {
            Location::Ended => CancelOutcome::NotActive,
            Location::Stream | Location::WaitReason { .. } if known.publishing => CancelOutcome::TooLate,
            Location::Stream | Location::WaitReason { .. } => CancelOutcome::Requested,
        };
        assert_eq!(f.kv.cancel(&known.job.pipeline, &known.job.job_id).unwrap(), expected);
        if expected == CancelOutcome::Requested {
            known.cancel = true;
            if let Location::WaitReason { due, .. } = &mut known.place {
                *due = now.min(*due);
            }
        }
    }

    fn hold(&mut self, f: &Fixture, n: usize) {
        let pipeline = pipeline(n);
        let hold = f.kv.lock_pipeline(&slug(pipeline), Duration::from_secs(TTL_S.unsigned_abs()), 0).unwrap();
        assert_eq!(hold.is_some(), self.lock(pipeline).is_none());
        if let Some(hold) = hold {
            self.rises(pipeline, hold.fence);
            let lock = Lock { token: hold.token.clone(), job: None, expires: self.now + TTL_S };
            self.locks.insert(pipeline, lock);
            self.holds.push(hold);
        }
    }

    fn release(&mut self, f: &Fixture, n: usize) {
        if self.holds.is_empty() {
            return;
        }
        let hold = self.holds[self.holds.len() - 1 - n % self.holds.len().min(2)].clone();
        let is_held = self.lock(hold.pipeline.as_str()).is_some_and(|lock| lock.token == hold.token);
        let done = f.kv.release(&hold).unwrap();
        assert_eq!(done == ReleaseOutcome::Released, is_held);
        if is_held {
            let pipeline = PIPELINES.into_iter().find(|p| *p == hold.pipeline.as_str()).unwrap();
            self.released(f, pipeline);
        }
    }

    fn release_due(&mut self, f: &Fixture) {
        while self.claim(f, 0, 1_000) > 0 {}
        let now = self.now;
        let due = |known: &Known| match known.place {
            Location::WaitReason { due, .. } if due <= now => Some(due),
            Location::WaitReason { .. } | Location::Stream | Location::Ended => None,
        };
        let expected: Vec<usize> = (0..self.jobs.len()).filter(|n| due(&self.jobs[*n]).is_some()).collect();
        assert_eq!(f.kv.release_due(1_000).unwrap(), expected.len());
        // The order of those returned by one call is unknown to the model, so it claims them at once.
        for job in &expected {
            self.jobs[*job].place = Location::Stream;
        }
        if !expected.is_empty() {
            let is_locked = |job: &usize| self.lock(self.pipeline_of(*job)).is_some_and(|lock| lock.job != Some(*job));
            let (locked, expected): (Vec<usize>, Vec<usize>) = expected.into_iter().partition(is_locked);
            for job in locked {
                let left = self.lock(self.pipeline_of(job)).unwrap().expires - now;
                self.defers(job, left);
            }
            if !expected.is_empty() {
                self.order.reset();
            }
            let claim = || f.kv.claim(&name(0), ClaimLimits::any(1_000), IMMEDIATELY).unwrap();
            // Each claim takes one of a pipeline.
            let entries: Vec<Entry> =
                std::iter::repeat_with(claim).take_while(|entries| !entries.is_empty()).flatten().collect();
            let mut found: Vec<usize> = entries.iter().map(|entry| self.job_of(entry)).collect();
            found.sort_unstable();
            assert_eq!(found, expected);
            self.stream.extend(expected.into_iter().map(|job| InStream { job, pending: None }));
            self.record_delivery(0, entries);
        }
    }

    fn extend(&mut self, f: &Fixture, n: usize) {
        let changed = self.changed.entry(pipeline(n)).or_insert_with(ChangedKeys::none);
        if n.is_multiple_of(9) {
            f.kv.extend_windows(&[slug(pipeline(n))]).unwrap();
            *changed = ChangedKeys::All;
        } else {
            let key = format!("{}.csv", n % 5);
            f.kv.record_changes(&[(slug(pipeline(n)), [key.as_str()].into_iter().collect())]).unwrap();
            changed.insert(&key);
        }
        let first = self.windows.get(pipeline(n)).map_or(self.now, |(first, _)| *first);
        self.windows.insert(pipeline(n), (first, (self.now + 5).min(first + 30)));
    }

    fn fire(&mut self, f: &Fixture, n: usize) {
        let is_due = self.windows.get(pipeline(n)).is_some_and(|(_, due)| *due <= self.now);
        let mut job = f.job(pipeline(n));
        job.enqueued_at += chrono::TimeDelta::milliseconds(self.jobs.len() as i64);
        assert_eq!(f.kv.fire_window(&job).unwrap(), is_due);
        if is_due {
            self.windows.remove(pipeline(n));
            let keys = self.changed.remove(pipeline(n)).unwrap();
            self.add(job, keys);
        }
    }

    fn take(&mut self, f: &Fixture, step: &Step) {
        match *step {
            Step::Enqueue(n) => self.enqueue(f, n),
            Step::EnqueueAgain(n) => {
                let active: Vec<_> = self.jobs.iter().filter(|known| known.place != Location::Ended).collect();
                if let Some(known) = active.get(n % active.len().max(1)) {
                    let outcome = f.kv.enqueue(&known.job).unwrap();
                    assert_eq!(outcome, lakemill::ports::jobs::EnqueueOutcome::AlreadyActive);
                }
            }
            Step::Claim(c, count) => {
                self.claim(f, c, count);
            }
            Step::Reclaim(c) => self.reclaim(f, c),
            Step::Start(n) => self.start(f, n),
            Step::Heartbeat(n) => self.heartbeat(f, n),
            Step::Publish(n) => self.publish(f, n),
            Step::PutBack(n, long, free) => self.requeue(f, n, long, free),
            Step::End(n) => self.end(f, n),
            Step::Cancel(n) => self.cancel(f, n),
            Step::Hold(n) => self.hold(f, n),
            Step::Release(n) => self.release(f, n),
            Step::ReleaseDue => self.release_due(f),
            Step::Extend(n) => self.extend(f, n),
            Step::Fire(n) => self.fire(f, n),
            Step::Pass(by) => {
                f.advance(seconds(by.unsigned_abs()));
                self.now += by;
            }
        }
    }

    /// Each job is in exactly one place, and the store agrees.
    fn agrees(&self, f: &Fixture) {
        let counts = f.kv.counts().unwrap();
        let pending = self.stream.iter().filter(|e| e.pending.is_some()).count() as u64;
        let waiting =
            self.jobs.iter().filter(|known| matches!(known.place, Location::WaitReason { .. })).count() as u64;
        assert_eq!((counts.stream, counts.pending, counts.waiting), (self.stream.len() as u64, pending, waiting));
        assert_eq!(counts.windows, self.windows.len() as u64);
        for known in &self.jobs {
            assert_eq!(f.kv.changed_keys(&known.job.job_id).unwrap(), known.keys);
        }
        for pipeline in PIPELINES {
            let active = |known: &&Known| known.place != Location::Ended && known.job.pipeline.as_str() == pipeline;
            let expected: Vec<_> = self.jobs.iter().filter(active).collect();
            let found = f.kv.active(&slug(pipeline), 1_000).unwrap();
            assert_eq!(found.len(), expected.len());
            for known in expected {
                let shown = found.iter().find(|job| job.job_id == known.job.job_id).unwrap();
                assert_eq!(shown.attempt, known.attempts);
                let waits = matches!(known.place, Location::WaitReason { .. });
                assert_eq!(shown.not_before.is_some(), waits, "{shown:?}");
                assert!(!waits || shown.status == JobStatus::Queued, "{shown:?}");
            }
        }
    }

    /// Nothing is lost: without further faults all jobs end.
    fn drains(&mut self, f: &Fixture) {
        for _ in 0..DRAIN_ROUNDS_MAX {
            if self.jobs.iter().all(|known| known.place == Location::Ended) {
                self.agrees(f);
                assert_eq!((self.stream.len(), f.places()), (0, (0, 0, 0)));
                return;
            }
            f.advance(seconds(140));
            self.now += 140;
            self.release_due(f);
            self.reclaim(f, 1);
            self.claim(f, 1, 1_000);
            for claim in 0..self.claims.len() {
                if self.is_pending(claim) {
                    self.run_to_completion(f, claim);
                }
            }
        }
        panic!("{} jobs never ended", self.jobs.iter().filter(|known| known.place != Location::Ended).count());
    }

    fn run_to_completion(&mut self, f: &Fixture, claim: usize) {
        // The last claim, which step 0 starts.
        let picked = self.claims.remove(claim);
        self.claims.push(picked);
        let runs = self.runs.len();
        self.start(f, 0);
        if self.runs.len() > runs {
            // The newest run, which completes.
            self.end(f, 5);
        }
    }
}

/// Each case has a fresh store.
pub fn random_steps_match_the_model(fresh: impl Fn() -> Fixture) {
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let steps = proptest::collection::vec(step(), 20..STEPS_MAX);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        let f = fresh();
        f.backend.stop();
        let mut model = Model::default();
        for step in &steps {
            model.take(&f, step);
            model.agrees(&f);
        }
        model.drains(&f);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
