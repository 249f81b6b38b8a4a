//! The key-value store as a simulated process sees it: SQLite with injected faults.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lakemill::adapters::sqlite::SqliteKv;
use lakemill::domain::job::{AttemptCost, ChangedKeys, Job, JobId, JobPosition};
use lakemill::domain::login::LoginScopes;
use lakemill::domain::name::{QueryId, Slug};
use lakemill::domain::notification::{Delivery, Notification, NotificationRecord, TargetName};
use lakemill::domain::pause::Pause;
use lakemill::ports::job_index::{EndedFilter, EndedJob, EndedJobs, JobIndex, NewestEnds, UnindexedPipeline};
use lakemill::ports::jobs::*;
use lakemill::ports::kv::{Diagnose, KeyLocks, KvError, KvReport, KvResult};
use lakemill::ports::notifications::{
    AfterDelivery, ChangeOutcome, ClaimedNotification, IncidentChange, Notifications, StoredIncident,
};
use lakemill::ports::pauses::{PausesInForce, RunPauses};
use lakemill::ports::queries::{RegisteredQuery, RunningQueries};
use lakemill::ports::rechecks::{Recheck, Rechecks};
use lakemill::ports::run_requests::RunRequests;
use lakemill::ports::schedule::{CloseReason, Cursor, Schedule};
use lakemill::ports::sessions::{Admission, LoginThrottle, Session, Sessions};
use lakemill::ports::store::{Bucket, ObjectStore, WriteOptions};
use lakemill::runtime::simulation;

use super::world::{CLAIMS, CallOutcome, Mutation, World};
use crate::faults::checker::Written;

/// How long an unavailable server blocks a caller.
const TIMEOUT: Duration = Duration::from_millis(300);

pub struct SimKv {
    pub world: Arc<World>,
    pub process: usize,
}

/// The kind of a store call, which determines its faults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Polled repeatedly while idle.
    Tick,
    Read,
    /// Allowed on a full server: it adds no data.
    Ends,
    Write,
}

impl SimKv {
    fn call<T: std::fmt::Debug>(
        &self,
        name: &'static str,
        kind: Kind,
        op: impl FnOnce(&SqliteKv) -> KvResult<T>,
    ) -> KvResult<T> {
        let world = &self.world;
        let tick = kind == Kind::Tick;
        let away = || KvError::Unavailable { operation: name, source: std::io::ErrorKind::ConnectionReset.into() };
        let fate = world.set_out(self.process, tick);
        if world.is_kv_stopped() {
            world.pause(TIMEOUT);
            return Err(away());
        }
        if world.is_kv_full() && kind == Kind::Write {
            return Err(KvError::Refused { operation: name, reason: "out of memory".into() });
        }
        if fate == CallOutcome::Error {
            if !tick {
                world.scheduler.note(self.process, format!("{name} fails"));
            }
            return Err(away());
        }
        let done = op(&world.kv);
        if !tick {
            let how = if fate == CallOutcome::LostReply { "whose reply is lost" } else { "" };
            world.scheduler.note(self.process, format!("{name} {how} -> {}", short(&format!("{done:?}"))));
            world.send_response(self.process);
        }
        if fate == CallOutcome::LostReply { Err(away()) } else { done }
    }

    fn wake_claims(&self) {
        if let Some(thread) = simulation::current() {
            thread.wake(CLAIMS);
        }
    }

    fn raw(&self, sql: &str, params: impl rusqlite::Params) {
        let conn = rusqlite::Connection::open(&self.world.db).unwrap();
        conn.execute(sql, params).unwrap();
    }

    /// Writes the record that a mutation delayed.
    fn write_late(&self, job_id: &JobId) {
        let lease = self.world.held_back.lock().unwrap().remove(job_id.as_str());
        let Some((key, bytes)) = lease else { return };
        // A call with the usual faults.
        if self.world.set_out(self.process, false) == CallOutcome::Error {
            return;
        }
        self.world.store.put(Bucket::Pipelines, &key, &bytes, &WriteOptions::default()).unwrap();
        self.world.history.lock().unwrap().written.extend(Written::of(Bucket::Pipelines, &key, &bytes));
    }
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}

impl JobQueue for SimKv {
    fn claim(&self, consumer: &str, limits: ClaimLimits, wait: Duration) -> KvResult<Vec<Entry>> {
        let began = self.world.scheduler.now();
        loop {
            let entries = self.call("claim", Kind::Tick, |kv| kv.claim(consumer, limits, Duration::ZERO))?;
            let left = wait.saturating_sub(self.world.scheduler.now() - began);
            if !entries.is_empty() || left.is_zero() {
                for entry in &entries {
                    let job = entry.fields.first().map_or("", |(_, value)| value.as_str());
                    self.world.scheduler.note(self.process, format!("claim {} {job}", entry.id.0));
                }
                return Ok(entries);
            }
            if let Some(thread) = simulation::current() {
                thread.wait(CLAIMS, left);
            }
        }
    }

    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>> {
        let entries = self.call("reclaim", Kind::Tick, |kv| kv.reclaim(consumer, count, idle))?;
        for entry in &entries {
            self.world.scheduler.note(self.process, format!("reclaim {}", entry.id.0));
        }
        Ok(entries)
    }

    fn start(&self, request: &StartRequest<'_>) -> KvResult<StartOutcome> {
        self.call("start", Kind::Write, |kv| {
            let started = kv.start(request)?;
            if let StartOutcome::Running(_) = &started {
                self.world.count("(starts)");
            }
            Ok(started)
        })
    }

    fn heartbeat(&self, lease: &JobLease, lock_ttl: Duration) -> KvResult<HeartbeatReply> {
        self.call("heartbeat", Kind::Ends, |kv| kv.heartbeat(lease, lock_ttl))
    }

    fn update_record(&self, lease: &JobLease, job: &Job) -> KvResult<HeartbeatReply> {
        self.call("show", Kind::Write, |kv| kv.update_record(lease, job))
    }

    fn begin_publishing(&self, lease: &JobLease) -> KvResult<PublishReply> {
        self.call("begin_publishing", Kind::Ends, |kv| kv.begin_publishing(lease))
    }

    fn requeue(&self, lease: &JobLease, wait: &Requeue<'_>) -> KvResult<ReleaseOutcome> {
        let name = if wait.cost == AttemptCost::Zero { "requeue, free," } else { "requeue" };
        self.call(name, Kind::Ends, |kv| kv.requeue(lease, wait))
    }

    fn refund_attempt(&self, lease: &JobLease) -> KvResult<bool> {
        self.call("refund_attempt", Kind::Ends, |kv| kv.refund_attempt(lease))
    }

    fn finish(&self, lease: &JobLease, job: &Job) -> KvResult<ReleaseOutcome> {
        let done = self.call("end", Kind::Ends, |kv| kv.finish(lease, job));
        self.write_late(&lease.job_id);
        done
    }

    fn dead_letter(&self, entry: &Entry, why: &str) -> KvResult<()> {
        self.call("dead_letter", Kind::Ends, |kv| kv.dead_letter(entry, why))
    }

    fn remove_consumer(&self, consumer: &str) -> KvResult<()> {
        self.call("leave", Kind::Ends, |kv| kv.remove_consumer(consumer))
    }
}

impl JobRegistry for SimKv {
    fn enqueue(&self, job: &Job) -> KvResult<EnqueueOutcome> {
        let done = self.call("enqueue", Kind::Write, |kv| kv.enqueue(job));
        self.wake_claims();
        done
    }

    fn attempts_max(&self) -> KvResult<Option<u32>> {
        self.call("attempts_max", Kind::Tick, |kv| kv.attempts_max())
    }

    fn set_attempts_max(&self, attempts_max: u32) -> KvResult<()> {
        self.call("set_attempts_max", Kind::Write, |kv| kv.set_attempts_max(attempts_max))
    }

    fn job(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Option<Job>> {
        self.call("job", Kind::Read, |kv| kv.job(pipeline, job_id))
    }

    fn active(&self, pipeline: &Slug, limit: usize) -> KvResult<Vec<Job>> {
        self.call("active", Kind::Read, |kv| kv.active(pipeline, limit))
    }

    fn cancel(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<CancelOutcome> {
        self.call("cancel", Kind::Write, |kv| kv.cancel(pipeline, job_id))
    }

    fn counts(&self) -> KvResult<QueueCounts> {
        self.call("counts", Kind::Tick, |kv| kv.counts())
    }

    fn oldest_due(&self) -> KvResult<Option<Duration>> {
        self.call("oldest_due", Kind::Tick, |kv| kv.oldest_due())
    }

    fn drop_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        self.call("drop_pipeline", Kind::Write, |kv| kv.drop_pipeline(pipeline))
    }

    fn revive_pipeline(&self, pipeline: &Slug) -> KvResult<()> {
        self.call("revive_pipeline", Kind::Write, |kv| kv.revive_pipeline(pipeline))
    }
}

impl PipelineLocks for SimKv {
    fn lock_holder(&self, pipeline: &Slug) -> KvResult<Option<LockHolder>> {
        self.call("holder", Kind::Read, |kv| kv.lock_holder(pipeline))
    }

    fn lock_pipeline(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<PipelineLock>> {
        self.call("hold", Kind::Write, |kv| kv.lock_pipeline(pipeline, ttl, fence_floor))
    }

    fn renew(&self, hold: &PipelineLock, ttl: Duration) -> KvResult<ReleaseOutcome> {
        self.call("renew", Kind::Ends, |kv| PipelineLocks::renew(kv, hold, ttl))
    }

    fn release(&self, hold: &PipelineLock) -> KvResult<ReleaseOutcome> {
        self.call("release", Kind::Ends, |kv| kv.release(hold))
    }
}

impl Schedule for SimKv {
    fn record_changes(&self, changes: &[(Slug, ChangedKeys)]) -> KvResult<Vec<DateTime<Utc>>> {
        let forgets = self.world.mutation == Mutation::ForgetsEvents && self.world.scheduler.happens(200);
        let act = |kv: &SqliteKv| if forgets { Ok(Vec::new()) } else { kv.record_changes(changes) };
        self.call("extend_windows", Kind::Write, act)
    }

    fn changed_keys(&self, job_id: &JobId) -> KvResult<ChangedKeys> {
        self.call("changed_keys", Kind::Read, |kv| kv.changed_keys(job_id))
    }

    /// Not a call: it only names a window in the log.
    fn window_opened_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        self.world.kv.window_opened_at(pipeline)
    }

    fn due_windows(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.call("due_windows", Kind::Tick, |kv| kv.due_windows(limit))
    }

    fn window_due_at(&self, pipeline: &Slug) -> KvResult<Option<DateTime<Utc>>> {
        self.call("window", Kind::Read, |kv| kv.window_due_at(pipeline))
    }

    fn fire_window(&self, job: &Job) -> KvResult<bool> {
        let done = self.call("fire_window", Kind::Write, |kv| {
            let fired = kv.fire_window(job)?;
            if fired {
                self.world.history.lock().unwrap().accepted.insert(job.job_id.to_string());
            }
            Ok(fired)
        });
        self.wake_claims();
        done
    }

    fn close_window(&self, pipeline: &Slug, reason: CloseReason) -> KvResult<bool> {
        self.call("close_window", Kind::Write, |kv| kv.close_window(pipeline, reason))
    }

    fn release_due(&self, limit: usize) -> KvResult<usize> {
        let released = self.call("release_due", Kind::Tick, |kv| {
            if self.world.mutation == Mutation::DropsDueJobs && self.world.scheduler.happens(20) {
                self.raw("DELETE FROM jobs WHERE due_ms IS NOT NULL", []);
            }
            kv.release_due(limit)
        })?;
        if released > 0 {
            self.world.scheduler.note(self.process, format!("release_due {released}"));
            self.wake_claims();
        }
        Ok(released)
    }

    fn requeue_lost(&self, from: &Cursor) -> KvResult<(usize, Option<Cursor>)> {
        let done = self.call("restore", Kind::Tick, |kv| kv.requeue_lost(from));
        self.wake_claims();
        done
    }

    fn is_initialized(&self) -> KvResult<bool> {
        self.call("is_initialized", Kind::Tick, |kv| kv.is_initialized())
    }

    fn mark_initialized(&self) -> KvResult<()> {
        self.call("remember", Kind::Write, |kv| kv.mark_initialized())
    }
}

impl RunRequests for SimKv {
    fn request_runs(&self, pipelines: &[Slug]) -> KvResult<()> {
        self.call("request_runs", Kind::Write, |kv| kv.request_runs(pipelines))
    }

    fn requested_runs(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.call("requested_runs", Kind::Tick, |kv| kv.requested_runs(limit))
    }

    fn enqueue_requested(&self, job: &Job) -> KvResult<bool> {
        let done = self.call("enqueue_requested", Kind::Write, |kv| {
            let enqueued = kv.enqueue_requested(job)?;
            if enqueued {
                self.world.history.lock().unwrap().accepted.insert(job.job_id.to_string());
            }
            Ok(enqueued)
        });
        self.wake_claims();
        done
    }

    fn is_run_requested(&self, pipeline: &Slug) -> KvResult<bool> {
        self.call("is_run_requested", Kind::Tick, |kv| kv.is_run_requested(pipeline))
    }

    fn withdraw_request(&self, pipeline: &Slug) -> KvResult<bool> {
        self.call("withdraw_request", Kind::Ends, |kv| kv.withdraw_request(pipeline))
    }
}

impl RunPauses for SimKv {
    fn pause(&self, pipeline: Option<&Slug>, pause: &Pause) -> KvResult<()> {
        self.call("pause", Kind::Write, |kv| kv.pause(pipeline, pause))
    }

    fn resume(&self, pipeline: Option<&Slug>) -> KvResult<bool> {
        self.call("resume", Kind::Ends, |kv| kv.resume(pipeline))
    }

    fn paused(&self, pipeline: Option<&Slug>) -> KvResult<Option<Pause>> {
        let kind = if pipeline.is_some() { Kind::Read } else { Kind::Tick };
        self.call("paused", kind, |kv| kv.paused(pipeline))
    }

    fn pauses(&self) -> KvResult<PausesInForce> {
        self.call("pauses", Kind::Read, |kv| kv.pauses())
    }
}

impl Notifications for SimKv {
    fn incident(&self, key: &str) -> KvResult<StoredIncident> {
        self.call("incident", Kind::Read, |kv| kv.incident(key))
    }

    fn change_incident(&self, change: &IncidentChange<'_>) -> KvResult<ChangeOutcome> {
        self.call("change_incident", Kind::Write, |kv| kv.change_incident(change))
    }

    fn add_notification(&self, notification: &Notification) -> KvResult<bool> {
        self.call("add_notification", Kind::Write, |kv| kv.add_notification(notification))
    }

    fn claim_notifications(&self, limit: usize, ttl: Duration) -> KvResult<Vec<ClaimedNotification>> {
        self.call("claim_notifications", Kind::Tick, |kv| kv.claim_notifications(limit, ttl))
    }

    fn record_deliveries(
        &self,
        claim: &ClaimedNotification,
        deliveries: &[Delivery],
        then: AfterDelivery,
    ) -> KvResult<bool> {
        self.call("record_deliveries", Kind::Write, |kv| kv.record_deliveries(claim, deliveries, then))
    }

    fn notifications(&self, before: Option<&str>, limit: usize) -> KvResult<Vec<NotificationRecord>> {
        self.call("notifications", Kind::Read, |kv| kv.notifications(before, limit))
    }

    fn set_notification_targets(&self, targets: &[TargetName], ttl: Duration) -> KvResult<()> {
        self.call("set_notification_targets", Kind::Tick, |kv| kv.set_notification_targets(targets, ttl))
    }

    fn notification_targets(&self) -> KvResult<Vec<TargetName>> {
        self.call("notification_targets", Kind::Read, |kv| kv.notification_targets())
    }
}

impl JobIndex for SimKv {
    fn ended(&self, filter: EndedFilter<'_>, before: Option<&JobPosition>, limit: usize) -> KvResult<EndedJobs> {
        self.call("ended", Kind::Read, |kv| kv.ended(filter, before, limit))
    }

    fn newest_ends(&self, pipelines: &[Slug]) -> KvResult<Vec<NewestEnds>> {
        self.call("newest_ends", Kind::Read, |kv| kv.newest_ends(pipelines))
    }

    fn forget_ended(&self, pipeline: &Slug, before_ms: i64) -> KvResult<()> {
        self.call("forget_ended", Kind::Ends, |kv| kv.forget_ended(pipeline, before_ms))
    }

    fn active_pipelines(&self, limit: usize) -> KvResult<Vec<Slug>> {
        self.call("active_pipelines", Kind::Read, |kv| kv.active_pipelines(limit))
    }

    fn index_ended(&self, jobs: &[EndedJob]) -> KvResult<()> {
        self.call("index_ended", Kind::Write, |kv| kv.index_ended(jobs))
    }

    fn is_built(&self) -> KvResult<bool> {
        self.call("is_built", Kind::Tick, |kv| kv.is_built())
    }

    fn mark_built(&self) -> KvResult<()> {
        self.call("mark_built", Kind::Write, |kv| kv.mark_built())
    }

    fn unindexed(&self, limit: usize) -> KvResult<Vec<UnindexedPipeline>> {
        self.call("unindexed", Kind::Tick, |kv| kv.unindexed(limit))
    }

    fn mark_indexed(&self, pipeline: &UnindexedPipeline) -> KvResult<()> {
        self.call("mark_indexed", Kind::Write, |kv| kv.mark_indexed(pipeline))
    }
}

impl Rechecks for SimKv {
    fn add_recheck(&self, pipeline: &Slug) -> KvResult<()> {
        self.call("add_recheck", Kind::Write, |kv| kv.add_recheck(pipeline))
    }

    fn take_rechecks(&self, limit: usize, hold: Duration) -> KvResult<Vec<Slug>> {
        self.call("take_rechecks", Kind::Tick, |kv| kv.take_rechecks(limit, hold))
    }

    fn complete_recheck(&self, pipeline: &Slug, outcome: Recheck) -> KvResult<()> {
        self.call("settle_recheck", Kind::Ends, |kv| kv.complete_recheck(pipeline, outcome))
    }
}

impl KeyLocks for SimKv {
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool> {
        self.call("try_lock", Kind::Write, |kv| kv.try_lock(name, token, ttl))
    }

    fn unlock(&self, name: &str, token: &str) -> KvResult<()> {
        self.call("unlock", Kind::Ends, |kv| kv.unlock(name, token))
    }
}

impl Diagnose for SimKv {
    fn ping(&self) -> KvResult<()> {
        self.call("ping", Kind::Read, |kv| kv.ping())
    }

    fn probe_write(&self) -> KvResult<()> {
        self.call("probe_write", Kind::Write, |kv| kv.probe_write())
    }

    fn report(&self) -> KvResult<KvReport> {
        self.world.kv.report()
    }

    fn time(&self) -> KvResult<Option<DateTime<Utc>>> {
        self.world.kv.time()
    }

    fn failures(&self) -> u64 {
        self.world.kv.failures()
    }
}

/// Never called by a worker.
const NO_WORKER: &str = "no worker asks for it";

impl Sessions for SimKv {
    fn open(&self, _: &str, _: Duration, _: Duration) -> KvResult<Session> {
        unreachable!("{NO_WORKER}")
    }

    fn touch(&self, _: &str, _: Duration) -> KvResult<Option<Session>> {
        unreachable!("{NO_WORKER}")
    }

    fn close(&self, _: &str) -> KvResult<()> {
        unreachable!("{NO_WORKER}")
    }
}

impl LoginThrottle for SimKv {
    fn admit(&self, _: &LoginScopes) -> KvResult<Admission> {
        unreachable!("{NO_WORKER}")
    }

    fn record_success(&self, _: &LoginScopes) -> KvResult<()> {
        unreachable!("{NO_WORKER}")
    }
}

impl RunningQueries for SimKv {
    fn register_query(&self, _: &Slug, _: &QueryId, _: Duration) -> KvResult<Option<RegisteredQuery>> {
        unreachable!("{NO_WORKER}")
    }

    fn cancel_query(&self, _: &Slug, _: &QueryId) -> KvResult<bool> {
        unreachable!("{NO_WORKER}")
    }

    fn cancelled_queries(&self, _: &[RegisteredQuery]) -> KvResult<Vec<bool>> {
        unreachable!("{NO_WORKER}")
    }

    fn unregister_query(&self, _: &RegisteredQuery) -> KvResult<()> {
        unreachable!("{NO_WORKER}")
    }
}
