//! Watches a run for the worker: takes its counters, and tells it when to stop.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shared;
use super::retrying::persist;
use super::stopping::{Phase, Stopping};
use crate::domain::job::{Job, Progress};
use crate::pipelines::lease::{Moment, RunLease};
use crate::ports::jobs::{HeartbeatReply, JobLease, PublishReply};
use crate::ports::kv::KvError;
use crate::ports::observer::Stop;
use crate::ports::store::Lease;
use crate::ports::{Kv, RunObserver};
use crate::runtime::Clock;

/// Pause between two tries to reach the key-value store.
const PAUSE: Duration = Duration::from_millis(500);

/// See the module.
pub(super) struct Watch {
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    stopping: Arc<Stopping>,
    held: JobLease,
    lease: Arc<RunLease>,
    progress: Mutex<Progress>,
    settled: Mutex<Option<Job>>,
    cancelled: AtomicBool,
    unheard: AtomicBool,
    publishing: AtomicBool,
}

impl Watch {
    pub(super) fn new(shared: &Shared, held: JobLease, lease: Arc<RunLease>, cancelled: bool) -> Self {
        Self {
            kv: Arc::clone(&shared.kv),
            clock: Arc::clone(&shared.clock),
            stopping: Arc::clone(&shared.stopping),
            held,
            lease,
            progress: Mutex::default(),
            settled: Mutex::default(),
            cancelled: AtomicBool::new(cancelled),
            unheard: AtomicBool::new(false),
            publishing: AtomicBool::new(false),
        }
    }

    /// Takes what a heartbeat told that was sent after `since`.
    pub(super) fn hear(&self, beat: HeartbeatReply, since: Moment) {
        match beat {
            HeartbeatReply::Held { cancelled } => {
                self.lease.renewed(since);
                self.unheard.store(false, Ordering::SeqCst);
                if cancelled {
                    self.cancel();
                }
            }
            HeartbeatReply::Lost => self.lease.lose(),
        }
    }

    /// A heartbeat is sent.
    pub(super) fn asked(&self) {
        self.unheard.store(true, Ordering::SeqCst);
    }

    /// Whether a heartbeat is without an answer: then the key-value store is to blame if the lease is lost.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard.load(Ordering::SeqCst)
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
        if self.stopping.phase() == Phase::Abandon {
            return Err(Stop::WorkerStopping);
        }
        if self.cancelled.load(Ordering::SeqCst) && !self.publishing.load(Ordering::SeqCst) {
            return Err(Stop::Cancelled);
        }
        Ok(())
    }

    /// Asks the key-value store whether the lock is still ours, and prolongs it.
    ///
    /// # Errors
    /// It isn't, or nobody could say so in time. Nothing else is a reason.
    pub(super) fn renew(&self) -> Result<(), Stop> {
        let (beat, since) = self.while_leased("asking for the lock", || {
            let since = Moment::now(&*self.clock);
            Ok((self.kv.heartbeat(&self.held, self.lease.ttl())?, since))
        })?;
        self.hear(beat, since);
        self.lease.remaining().map(drop).map_err(|_| Stop::LeaseLost)
    }

    /// The job as it is to be shown from now on, whatever its progress.
    pub(super) fn settle(&self, job: &Job) {
        *self.settled.lock() = Some(job.clone().without_sources());
    }

    /// The job as it is to be shown now.
    pub(super) fn shown(&self, running: &Job) -> Job {
        let settled = self.settled.lock().clone();
        settled.unwrap_or_else(|| Job { progress: Some(self.progress_now()), ..running.clone() })
    }

    /// Tries until the lease is over, or the worker is to end at once.
    fn while_leased<T>(&self, what: &'static str, mut tried: impl FnMut() -> Result<T, KvError>) -> Result<T, Stop> {
        let tried = || {
            self.asked();
            tried().inspect(|_| self.unheard.store(false, Ordering::SeqCst))
        };
        let pause = || {
            self.stopping.wait_for(Phase::Abandon, PAUSE);
        };
        let why = || match self.lease.remaining() {
            Err(_) => Some(Stop::LeaseLost),
            Ok(_) if self.stopping.phase() == Phase::Abandon => Some(Stop::WorkerStopping),
            Ok(_) => None,
        };
        persist(what, Duration::MAX, tried, pause, || why().is_some()).map_err(|_| why().unwrap_or(Stop::LeaseLost))
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
