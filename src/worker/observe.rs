//! Observes a run for the worker: receives its progress, and stops it on request.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::retry::retry_until;
use super::shared::WorkerShared;
use super::stopping::{Phase, Stopping};
use crate::domain::job::{Job, Progress};
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::RunObserver;
use crate::ports::jobs::{HeartbeatReply, JobLease, JobQueue, PublishReply};
use crate::ports::kv::KvError;
use crate::ports::observer::Stop;
use crate::ports::store::Lease;
use crate::runtime::Clock;

/// Pause before a call to the key-value store is retried.
const PAUSE: Duration = Duration::from_millis(500);

/// The observer of a run.
pub(super) struct Watch {
    kv: Arc<dyn JobQueue>,
    clock: Arc<dyn Clock>,
    stopping: Arc<Stopping>,
    held: JobLease,
    lease: Arc<RunLease>,
    progress: Mutex<Progress>,
    fixed_report: Mutex<Option<Job>>,
    cancelled: AtomicBool,
    heartbeat_pending: AtomicBool,
    publishing: AtomicBool,
}

impl Watch {
    pub(super) fn new(shared: &WorkerShared, held: JobLease, lease: Arc<RunLease>, cancelled: bool) -> Self {
        Self {
            kv: shared.kv.clone(),
            clock: Arc::clone(&shared.clock),
            stopping: Arc::clone(&shared.stopping),
            held,
            lease,
            progress: Mutex::default(),
            fixed_report: Mutex::default(),
            cancelled: AtomicBool::new(cancelled),
            heartbeat_pending: AtomicBool::new(false),
            publishing: AtomicBool::new(false),
        }
    }

    /// Applies the response to a heartbeat that was sent after `since`.
    pub(super) fn on_heartbeat(&self, beat: HeartbeatReply, since: Moment) {
        match beat {
            HeartbeatReply::Held { cancelled } => {
                self.lease.renewed(since);
                self.heartbeat_pending.store(false, Ordering::SeqCst);
                if cancelled {
                    self.cancel();
                }
            }
            HeartbeatReply::Lost => self.lease.lose(),
        }
    }

    /// A heartbeat is about to be sent.
    pub(super) fn set_heartbeat_pending(&self) {
        self.heartbeat_pending.store(true, Ordering::SeqCst);
    }

    /// Whether a heartbeat got no response yet. If the lease is lost then, the key-value store is at fault.
    pub(super) fn heartbeat_pending(&self) -> bool {
        self.heartbeat_pending.load(Ordering::SeqCst)
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    pub(super) fn progress_now(&self) -> Progress {
        self.progress.lock().clone()
    }

    /// # Errors
    /// Why the run must stop.
    pub(super) fn must_stop(&self) -> Result<(), Stop> {
        if self.lease.remaining().is_err() {
            return Err(Stop::LeaseLost);
        }
        if self.stopping.phase() == Phase::ForceStop {
            return Err(Stop::WorkerStopping);
        }
        if self.cancelled.load(Ordering::SeqCst) && !self.publishing.load(Ordering::SeqCst) {
            return Err(Stop::Cancelled);
        }
        Ok(())
    }

    /// Renews the lock in the key-value store.
    ///
    /// # Errors
    /// The lock is lost, or could not be renewed in time.
    pub(super) fn renew(&self) -> Result<(), Stop> {
        let (beat, since) = self.while_leased("renewing the lock", || {
            let since = Moment::now(&*self.clock);
            Ok((self.kv.heartbeat(&self.held, self.lease.ttl())?, since))
        })?;
        self.on_heartbeat(beat, since);
        self.lease.remaining().map(drop).map_err(|_| Stop::LeaseLost)
    }

    /// Reports this job from now on instead of the progress.
    pub(super) fn report_as(&self, job: &Job) {
        *self.fixed_report.lock() = Some(job.clone().without_sources());
    }

    /// The job in its current state for reports.
    pub(super) fn reported(&self, running: &Job) -> Job {
        let fixed = self.fixed_report.lock().clone();
        fixed.unwrap_or_else(|| Job { progress: Some(self.progress_now()), ..running.clone() })
    }

    /// Retries until the lease has expired or the worker is forced to stop.
    fn while_leased<T>(&self, what: &'static str, mut call: impl FnMut() -> Result<T, KvError>) -> Result<T, Stop> {
        let call = || {
            self.set_heartbeat_pending();
            call().inspect(|_| self.heartbeat_pending.store(false, Ordering::SeqCst))
        };
        let pause = || {
            self.stopping.wait_for(Phase::ForceStop, PAUSE);
        };
        let stop = || match self.lease.remaining() {
            Err(_) => Some(Stop::LeaseLost),
            Ok(_) if self.stopping.phase() == Phase::ForceStop => Some(Stop::WorkerStopping),
            Ok(_) => None,
        };
        retry_until(what, Duration::MAX, call, pause, || stop().is_some())
            .map_err(|_| stop().unwrap_or(Stop::LeaseLost))
    }
}

impl RunObserver for Watch {
    fn progress(&self, progress: &Progress) {
        self.progress.lock().clone_from(progress);
    }

    fn check(&self) -> Result<(), Stop> {
        self.must_stop()
    }

    fn begin_publishing(&self) -> Result<(), Stop> {
        self.must_stop()?;
        match self.while_leased("beginning to publish", || self.kv.begin_publishing(&self.held))? {
            PublishReply::Begun => {
                self.publishing.store(true, Ordering::SeqCst);
                Ok(())
            }
            PublishReply::Cancelled => Err(Stop::Cancelled),
            PublishReply::Lost => {
                self.lease.lose();
                Err(Stop::LeaseLost)
            }
        }
    }

    fn confirm(&self) -> Result<(), Stop> {
        self.must_stop()?;
        self.renew()?;
        self.must_stop()
    }
}
