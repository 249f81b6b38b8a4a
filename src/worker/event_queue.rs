//! Takes events of new objects from a queue, extends the debounce windows, then deletes the messages.
//!
//! A message that holds no events of the lake stays: the queue moves it to its dead-letter queue. Without one, it is
//! deleted once it was received [`RECEIVES_MAX`] times. While the key-value store is unavailable, nothing is received, so
//! that messages don't reach the dead-letter queue because of it.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::event_queue_state::QueueOutcome;
use super::events::{self, EventSummary};
use super::lifetime::WorkSource;
use super::record::record_events;
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::stopping::Phase;
use crate::ports::EventQueue;
use crate::ports::event_queue::{QueueError, QueueMessage};
use crate::runtime::WatchedThread;
use crate::runtime::threads::{self, Instant};
use crate::sync::Backoff;

/// How long the queue waits for messages.
const POLL_WAIT: Duration = Duration::from_secs(20);
/// The same for a worker that ends once nothing is left to do. SQS asks all its servers if it waits at all.
const POLL_WAIT_DRAINING: Duration = Duration::from_secs(2);
/// How long it takes to notice a stop.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// Pauses after failures.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Receipts of an unusable message before it is deleted, in a queue without dead letters.
const RECEIVES_MAX: u32 = 5;
/// Minimum interval between logs of unusable messages.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// A queue of events.
#[derive(Clone)]
pub struct QueuedEvents {
    pub queue: Arc<dyn EventQueue>,
    /// The lake's bucket, as named in events.
    pub lake_bucket: String,
}

/// Receives on a thread of its own, so that a stop doesn't wait for the end of a poll.
struct Poller {
    poll_requests: Sender<()>,
    batches: Receiver<Result<Vec<QueueMessage>, QueueError>>,
    is_polling: bool,
}

impl Poller {
    fn start(queue: &Arc<dyn EventQueue>, wait: Duration) -> std::io::Result<Self> {
        let (poll_requests, requested) = bounded::<()>(1);
        let (sender, batches) = bounded(1);
        let queue = Arc::clone(queue);
        threads::spawn("event-queue-poll", move || {
            // Ends with the consumer. Messages received by then become visible again.
            while requested.recv().is_ok() && sender.send(queue.receive(wait)).is_ok() {}
        })?;
        Ok(Self { poll_requests, batches, is_polling: false })
    }

    /// A batch, once there is one; an error if the thread has ended.
    fn next(&mut self) -> Result<Option<Result<Vec<QueueMessage>, QueueError>>, ()> {
        if !self.is_polling {
            self.poll_requests.send(()).map_err(drop)?;
            self.is_polling = true;
        }
        match self.batches.recv_timeout(CHECK_EVERY) {
            Ok(batch) => {
                self.is_polling = false;
                Ok(Some(batch))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }
}

/// Takes messages until the worker stops.
pub(super) fn run(shared: &WorkerShared, source: &QueuedEvents, watched: &WatchedThread) {
    let mut consumer = Consumer::new(shared, source);
    let mut poller: Option<Poller> = None;
    let mut backoff = Backoff::new(PAUSE_MIN, PAUSE_MAX);
    while shared.stopping.phase() == Phase::Working {
        watched.ping();
        let step = watched.waiting(|| consumer.step(&mut poller));
        match step {
            Step::Waiting => {}
            Step::Done => backoff.reset(),
            Step::Failed => {
                // Several workers must not return at the same time.
                let pause = backoff.next_pause().mul_f64(0.5 + threads::random_unit() / 2.0);
                shared.stopping.wait_for(Phase::Drain, pause);
            }
        }
    }
}

enum Step {
    Waiting,
    Done,
    Failed,
}

struct Consumer<'a> {
    shared: &'a WorkerShared,
    source: &'a QueuedEvents,
    polling: OutageLog,
    recording: OutageLog,
    /// Whether the last request to the key-value store failed.
    is_kv_unavailable: bool,
    refusals: RefusalLog,
}

impl<'a> Consumer<'a> {
    fn new(shared: &'a WorkerShared, source: &'a QueuedEvents) -> Self {
        let (polling, recording) =
            (OutageLog::new("reading the event queue"), OutageLog::new("recording events of the queue"));
        Self { shared, source, polling, recording, is_kv_unavailable: false, refusals: RefusalLog::default() }
    }

    fn step(&mut self, poller: &mut Option<Poller>) -> Step {
        if self.is_kv_unavailable {
            if let Err(error) = self.shared.kv.probe_write() {
                self.recording.failed(&error);
                return Step::Failed;
            }
            self.recording.recovered();
            self.is_kv_unavailable = false;
        }
        let current = match poller {
            Some(current) => current,
            None => match Poller::start(&self.source.queue, self.poll_wait()) {
                Ok(started) => poller.insert(started),
                Err(error) => {
                    self.polling.failed(&error);
                    return Step::Failed;
                }
            },
        };
        match current.next() {
            Ok(None) => Step::Waiting,
            Ok(Some(Ok(batch))) => {
                self.polling.recovered();
                self.shared.state.event_queue.set_error(None);
                if batch.is_empty() {
                    self.shared.sources.set_empty(WorkSource::EventQueue);
                }
                if self.take(&batch) { Step::Done } else { Step::Failed }
            }
            Ok(Some(Err(error))) => {
                self.polling.failed(&error);
                self.shared.state.event_queue.set_error(Some(error.to_string()));
                Step::Failed
            }
            Err(()) => {
                *poller = None;
                Step::Failed
            }
        }
    }

    fn poll_wait(&self) -> Duration {
        if self.shared.options.lifetime.ends() { POLL_WAIT_DRAINING } else { POLL_WAIT }
    }

    /// Uses a batch. False if recording or deleting failed; the messages then become visible again.
    fn take(&mut self, batch: &[QueueMessage]) -> bool {
        let state = &self.shared.state.event_queue;
        state.add(QueueOutcome::Received, batch.len());
        if let Some(oldest) = batch.iter().filter_map(|message| message.sent_at).min() {
            let age = (self.shared.clock.now() - oldest).num_milliseconds().max(0);
            state.set_age(age as f64 / 1_000.0);
        }
        let (mut all, mut used, mut done) = (EventSummary::default(), 0, Vec::new());
        for message in batch {
            match events::read_queued(&message.body, &self.source.lake_bucket) {
                Ok(summary) => {
                    all.merge(summary);
                    used += 1;
                    done.push(message.clone());
                }
                Err(error) => {
                    state.add(QueueOutcome::Refused, 1);
                    if self.should_delete(message, &error) {
                        done.push(message.clone());
                    }
                }
            }
        }
        if let Err(error) = record_events(&*self.shared.kv, &self.shared.state, all) {
            self.recording.failed(&error);
            self.is_kv_unavailable = true;
            return false;
        }
        state.add(QueueOutcome::Used, used);
        done.is_empty() || self.delete(&done)
    }

    fn delete(&mut self, messages: &[QueueMessage]) -> bool {
        let state = &self.shared.state.event_queue;
        match self.source.queue.delete(messages) {
            Ok(failures) => {
                state.add(QueueOutcome::Deleted, messages.len().saturating_sub(failures.len()));
                if let Some(why) = failures.first() {
                    let messages = failures.len();
                    tracing::warn!(messages, why, "event queue messages not deleted; they will be redelivered");
                }
                true
            }
            Err(error) => {
                self.polling.failed(&error);
                state.set_error(Some(error.to_string()));
                false
            }
        }
    }

    /// Logs an unusable message. Whether it is to be deleted.
    fn should_delete(&mut self, message: &QueueMessage, why: &events::EventError) -> bool {
        let QueueMessage { id, receives, .. } = message;
        if *receives < RECEIVES_MAX {
            if let Some(suppressed) = self.refusals.next_line() {
                tracing::warn!(id, receives, %why, suppressed, "event queue message not usable; left in the queue");
            }
            return false;
        }
        match self.source.queue.state() {
            // The queue moves it there after enough receipts.
            Ok(state) if state.receives_max.is_some() => false,
            Ok(_) => {
                tracing::error!(id, receives, %why, "event queue message not usable; deleted, since the queue has no dead-letter queue");
                true
            }
            Err(error) => {
                if let Some(suppressed) = self.refusals.next_line() {
                    tracing::warn!(id, receives, %why, %error, suppressed, "event queue message not usable; left in the queue");
                }
                false
            }
        }
    }
}

/// When an unusable message was logged, and how many since were not.
#[derive(Debug, Default)]
struct RefusalLog {
    at: Option<Instant>,
    suppressed: u64,
}

impl RefusalLog {
    /// Whether to log now, and how many were suppressed.
    fn next_line(&mut self) -> Option<u64> {
        if self.at.is_some_and(|at| at.elapsed() < LOG_EVERY) {
            self.suppressed += 1;
            return None;
        }
        self.at = Some(Instant::now());
        Some(std::mem::take(&mut self.suppressed))
    }
}
