//! Starts children ahead of need, counts those in use, and reaps them.
//!
//! Invariant: one thread starts and reaps all children and outlives them, since a child dies with the thread that
//! started it. At most `children_max` children are in use, and at most `warm` idle ones are alive.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::SandboxOptions;
use super::error::SandboxError;
use super::folders::ChildFolders;
use super::landlock;
use super::process::Process;
use super::task::{Confined, Confinement};
use super::zones;
use crate::runtime::{WatchedThread, failpoint};
use crate::sync::{Backoff, Monitor};
use crate::system::ProcessFolder;

/// Pause after a failed start; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Interval of checks of idle children.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The children of a sandbox; shared by the sandbox, its thread and borrowed children.
pub struct Supervisor {
    pub folders: Option<ChildFolders>,
    pub state: Monitor<SupervisorState>,
    options: SandboxOptions,
    zones: ProcessFolder,
    landlock: bool,
    /// Confinement of the child that became ready last.
    confinement: Mutex<Option<Confinement>>,
    confinement_warned: AtomicBool,
}

pub struct SupervisorState {
    /// Set by the sandbox when it is dropped.
    pub closed: bool,
    /// Set by the thread when no child is left.
    pub finished: bool,
    pub borrowed: usize,
    /// Started; the oldest first.
    warm: VecDeque<Process>,
    /// Returned; to be reaped.
    returned: Vec<Process>,
    /// Borrowed, or not yet reaped.
    in_use: usize,
    waiting: usize,
    failure: Option<StartFailure>,
    backoff: Backoff,
}

struct StartFailure {
    reason: String,
    retry_at: Instant,
}

impl Supervisor {
    /// Makes the folders and clears those of dead processes.
    ///
    /// # Errors
    /// A folder can't be created.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let options =
            SandboxOptions { threads: options.threads.max(1), children_max: options.children_max.max(1), ..options };
        Ok(Self {
            folders: options.folder.as_deref().map(ChildFolders::open).transpose()?,
            options,
            zones: zones::write()?,
            state: Monitor::new(SupervisorState {
                closed: false,
                finished: false,
                borrowed: 0,
                warm: VecDeque::new(),
                returned: Vec::new(),
                in_use: 0,
                waiting: 0,
                failure: None,
                backoff: Backoff::new(PAUSE_MIN, PAUSE_MAX),
            }),
            landlock: landlock::supported() == Confined::Fully,
            confinement: Mutex::default(),
            confinement_warned: AtomicBool::new(false),
        })
    }

    /// The confinement of the child that became ready last; `None` before the first.
    pub fn confinement(&self) -> Option<Confinement> {
        *self.confinement.lock()
    }

    /// Whether the last child was fully confined; before the first, whether the kernel has Landlock.
    pub fn is_confined(&self) -> bool {
        self.confinement().map_or(self.landlock, Confinement::is_full)
    }

    /// Takes a started child, waiting for one until `until`; `wait` is the whole wait.
    ///
    /// # Errors
    /// All are in use, or none could be started.
    pub fn take(&self, wait: Duration, until: Instant) -> Result<Process, SandboxError> {
        let children_max = self.options.children_max;
        self.state.update(|state| state.waiting += 1);
        let left = until.saturating_duration_since(Instant::now());
        let process = self.state.wait(left, |state| state.take_warm(children_max));
        self.state.update(|state| {
            state.waiting -= 1;
            process.ok_or_else(|| match &state.failure {
                Some(failure) => SandboxError::Start { reason: failure.reason.clone() },
                None if state.in_use >= children_max => SandboxError::Busy { children_max, waited: wait },
                None => SandboxError::Start { reason: format!("none is ready after {} ms", wait.as_millis()) },
            })
        })
    }

    /// Takes a child back, to be reaped.
    pub fn reap_process(&self, process: Process) {
        self.state.update(|state| {
            state.borrowed -= 1;
            state.returned.push(process);
        });
    }

    /// Notes that a child became ready.
    pub fn started(&self, confinement: Confinement) {
        self.state.update(|state| {
            state.failure = None;
            state.backoff.reset();
        });
        *self.confinement.lock() = Some(confinement);
        if confinement.is_full() || self.confinement_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        match confinement.landlock {
            Confined::Fully => {}
            Confined::Partly => {
                tracing::warn!("kernel supports only part of Landlock; SQL processes are less confined")
            }
            Confined::Not => {
                tracing::warn!("kernel has no Landlock; only DuckDB's settings restrict the files that SQL can read")
            }
        }
        if !confinement.syscalls {
            tracing::warn!("kernel rejects system call filters; SQL processes can use all system calls");
        }
    }

    /// Notes that a child couldn't be started, and delays the next start.
    pub fn start_failed(&self, reason: String) {
        self.state.update(|state| {
            if state.failure.as_ref().is_none_or(|failure| failure.reason != reason) {
                tracing::error!(reason, "SQL process failed to start; retrying");
            }
            state.failure = Some(StartFailure { reason, retry_at: Instant::now() + state.backoff.next_pause() });
        });
    }

    /// Runs the thread: starts and reaps children until the sandbox is closed and none is left.
    pub fn run(&self, watched: &WatchedThread) {
        loop {
            watched.ping();
            failpoint::reach("sandbox::keep");
            // The kernel may take long to end a process.
            watched.waiting(|| self.reap());
            if self.state.lock().closed {
                if self.state.update(SupervisorState::finish) {
                    return;
                }
                self.state.wait(CHECK_INTERVAL, |state| (!state.returned.is_empty()).then_some(()));
                continue;
            }
            let pause = self.start_after(&self.state.lock());
            if pause == Some(Duration::ZERO) {
                let start = || {
                    let folder = self.folders.as_ref().map(ChildFolders::child).transpose()?;
                    Process::start(&self.options, folder, self.zones.path())
                };
                match watched.waiting(start) {
                    Ok(process) => self.state.update(|state| state.warm.push_back(process)),
                    Err(error) => self.start_failed(error.to_string()),
                }
                continue;
            }
            let has_work = |state: &mut SupervisorState| {
                let start = self.start_after(state) == Some(Duration::ZERO);
                (start || state.closed || !state.returned.is_empty()).then_some(())
            };
            if self.state.wait(pause.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL), has_work).is_none()
                && self.state.lock().return_exited()
            {
                self.start_failed("it exited before a query".to_owned());
            }
        }
    }

    /// How long until the next start; `None` if there are enough children.
    fn start_after(&self, state: &SupervisorState) -> Option<Duration> {
        let free = self.options.children_max.saturating_sub(state.in_use);
        let wanted = self.options.warm.max(state.waiting.min(free));
        let retry_at = state.failure.as_ref().map(|failure| failure.retry_at);
        let pause = retry_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        (state.warm.len() < wanted).then_some(pause)
    }

    /// Ends returned children, without the lock.
    fn reap(&self) {
        loop {
            let returned = std::mem::take(&mut self.state.lock().returned);
            if returned.is_empty() {
                return;
            }
            let count = returned.len();
            returned.into_iter().for_each(Process::end);
            self.state.update(|state| state.in_use -= count);
        }
    }
}

impl SupervisorState {
    fn take_warm(&mut self, children_max: usize) -> Option<Process> {
        while self.in_use < children_max {
            let process = self.warm.pop_front()?;
            self.in_use += 1;
            if !process.has_exited() {
                self.borrowed += 1;
                return Some(process);
            }
            self.returned.push(process);
        }
        None
    }

    /// Returns warm children that have exited; whether there were any.
    fn return_exited(&mut self) -> bool {
        let (exited, alive): (Vec<_>, Vec<_>) = self.warm.drain(..).partition(Process::has_exited);
        let any = !exited.is_empty();
        self.warm = alive.into();
        self.in_use += exited.len();
        self.returned.extend(exited);
        any
    }

    /// Returns all warm children; whether none is left.
    fn finish(&mut self) -> bool {
        self.in_use += self.warm.len();
        self.returned.extend(self.warm.drain(..));
        self.finished = self.in_use == 0;
        self.finished
    }
}
