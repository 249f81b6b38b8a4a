//! Keeps children ready, lends them out one query each, and clears away what is left of them.
//!
//! Invariant: one thread starts and buries all children, and lives as long as any of them, since a child dies with
//! the thread that started it. At most `children_max` are lent, and `warm` more alive.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::SandboxOptions;
use super::child::landlock_of_kernel;
use super::client::Child;
use super::error::SandboxError;
use super::folders::{Folders, Staging};
use super::process::Process;
use super::task::{Confined, Confinement};
use super::zones;
use crate::runtime::{WatchedThread, failpoint};
use crate::system::ProcessFolder;

/// Longest that a child may take until it is ready.
pub const START_MAX: Duration = Duration::from_secs(20);
/// Pause after a start that failed; doubles up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the children that wait are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long the end of a sandbox waits for its children's.
const END_MAX: Duration = Duration::from_secs(5);

/// A pool of processes for people's SQL.
pub struct Sandbox {
    pool: Arc<Pool>,
    version: OnceLock<String>,
    keeper: Option<JoinHandle<()>>,
}

/// What the sandbox, its thread and the children on loan share.
pub struct Pool {
    pub options: SandboxOptions,
    folders: Option<Folders>,
    zones: ProcessFolder,
    state: Mutex<State>,
    changed: Condvar,
    unconfined_told: AtomicBool,
    /// Whether the last child that told was fully confined; before, whether the kernel could.
    confined: AtomicBool,
    confinement: Mutex<Option<Confinement>>,
}

#[derive(Default)]
struct State {
    /// Started; the oldest first.
    warm: VecDeque<Process>,
    /// On loan, or given back and not yet buried.
    lent: usize,
    /// On loan.
    out: usize,
    /// Given back.
    used: Vec<Process>,
    waiting: usize,
    /// Why the last start failed, and when the next may be.
    failed: Option<(String, Duration, Instant)>,
    closed: bool,
    over: bool,
}

impl Sandbox {
    /// Makes the folders, clears leftovers of dead processes, and starts the first children in the background.
    ///
    /// # Errors
    /// The folder can't be used, or there is no thread.
    pub fn start(options: SandboxOptions) -> Result<Self, SandboxError> {
        Self::start_watched(options, WatchedThread::unwatched())
    }

    /// As [`Sandbox::start`]; `watched` gets the signs of life of the thread that keeps the children.
    ///
    /// # Errors
    /// As [`Sandbox::start`].
    pub fn start_watched(options: SandboxOptions, watched: WatchedThread) -> Result<Self, SandboxError> {
        let options =
            SandboxOptions { threads: options.threads.max(1), children_max: options.children_max.max(1), ..options };
        let folders = options.folder.as_deref().map(Folders::open).transpose()?;
        let pool = Arc::new(Pool {
            options,
            folders,
            zones: zones::write()?,
            state: Mutex::default(),
            changed: Condvar::new(),
            unconfined_told: AtomicBool::new(false),
            confined: AtomicBool::new(landlock_of_kernel() == Confined::Fully),
            confinement: Mutex::default(),
        });
        let keeper = Arc::clone(&pool);
        let keeper = std::thread::Builder::new()
            .name("sql-keeper".to_owned())
            .spawn(move || keeper.keep(&watched))
            .map_err(|error| SandboxError::Start { reason: format!("starting a thread: {error}") })?;
        Ok(Self { pool, version: OnceLock::new(), keeper: Some(keeper) })
    }

    /// Whether the children are held fully: as the last one that was lent told, before as the kernel says of Landlock.
    pub fn is_confined(&self) -> bool {
        self.pool.confined.load(Ordering::Relaxed)
    }

    /// What confines the child that was lent last; `None` before the first.
    pub fn confinement(&self) -> Option<Confinement> {
        *self.pool.confinement.lock()
    }

    /// DuckDB's version, as `1.5.6`, by a child that is asked once.
    ///
    /// # Errors
    /// As [`Sandbox::child`]; the child doesn't answer.
    pub fn duckdb_version(&self, wait: Duration) -> Result<String, SandboxError> {
        if let Some(known) = self.version.get() {
            return Ok(known.clone());
        }
        let found = self.child(wait)?.duckdb_version(Instant::now() + wait)?;
        Ok(self.version.get_or_init(|| found).clone())
    }

    /// Children on loan now.
    pub fn lent(&self) -> u64 {
        self.pool.state().out as u64
    }

    /// Makes a folder on the file system of the children's, where files are made ready before a child is taken.
    ///
    /// # Errors
    /// It can't be made.
    pub fn staging(&self) -> Result<Staging, SandboxError> {
        match &self.pool.folders {
            Some(folders) => folders.staging(),
            None => Err(SandboxError::Failed { message: "processes for expressions have no folder".to_owned() }),
        }
    }

    /// Takes a child for one unit of work, waiting up to `wait` for one to become free.
    ///
    /// # Errors
    /// [`SandboxError::Busy`] when all are taken for that long; [`SandboxError::Start`] when none can be started.
    pub fn child(&self, wait: Duration) -> Result<Child, SandboxError> {
        let until = Instant::now() + wait;
        loop {
            let process = self.pool.take(wait, until)?;
            let mut child = Child::new(process, Arc::clone(&self.pool));
            match child.ready(Instant::now() + START_MAX) {
                Ok(confinement) => {
                    self.pool.started(confinement);
                    return Ok(child);
                }
                Err(error) => {
                    let reason =
                        child.last_words().map_or_else(|| error.to_string(), |words| format!("{error}: {words}"));
                    drop(child);
                    self.pool.not_started(reason);
                }
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.closed = true;
        self.pool.changed.notify_all();
        let until = Instant::now() + END_MAX;
        while !state.over && state.out == 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.pool.changed.wait_for(&mut state, left);
        }
        let over = state.over;
        drop(state);
        // The last to leave removes the folder: that is then whoever drops the sandbox.
        if let Some(keeper) = self.keeper.take().filter(|_| over) {
            let _ = keeper.join();
        }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn take(&self, wait: Duration, until: Instant) -> Result<Process, SandboxError> {
        let mut state = self.state();
        state.waiting += 1;
        self.changed.notify_all();
        let taken = loop {
            if state.lent < self.options.children_max
                && let Some(process) = state.warm.pop_front()
            {
                state.lent += 1;
                if process.is_gone() {
                    state.used.push(process);
                    continue;
                }
                state.out += 1;
                break Ok(process);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.closed {
                break Err(match &state.failed {
                    Some((reason, _, _)) => SandboxError::Start { reason: reason.clone() },
                    None if state.lent >= self.options.children_max => {
                        SandboxError::Busy { children_max: self.options.children_max, waited: wait }
                    }
                    None => SandboxError::Start { reason: format!("none is ready after {} ms", wait.as_millis()) },
                });
            }
            self.changed.wait_for(&mut state, left);
        };
        state.waiting -= 1;
        self.changed.notify_all();
        taken
    }

    /// Takes a child back, to be ended.
    pub fn give_back(&self, process: Process) {
        let mut state = self.state();
        state.out -= 1;
        state.used.push(process);
        self.changed.notify_all();
    }

    fn started(&self, confinement: Confinement) {
        self.state().failed = None;
        self.confined.store(confinement.is_full(), Ordering::Relaxed);
        *self.confinement.lock() = Some(confinement);
        if confinement.is_full() || self.unconfined_told.swap(true, Ordering::Relaxed) {
            return;
        }
        match confinement.landlock {
            Confined::Fully => {}
            Confined::Partly => tracing::warn!("the kernel knows only a part of Landlock's rules"),
            Confined::Not => tracing::warn!("the kernel has no Landlock; SQL can be kept from files by DuckDB alone"),
        }
        if !confinement.syscalls {
            tracing::warn!("the kernel takes no filter of system calls; processes for SQL keep all of them");
        }
    }

    fn not_started(&self, reason: String) {
        let mut state = self.state();
        let pause = match &state.failed {
            Some((_, pause, _)) => (*pause * 2).min(PAUSE_MAX),
            None => PAUSE_FIRST,
        };
        if state.failed.as_ref().is_none_or(|(told, _, _)| *told != reason) {
            tracing::error!(reason, "a process for queries can't be started");
        }
        state.failed = Some((reason, pause, Instant::now() + pause));
        self.changed.notify_all();
    }

    /// The background thread: starts and buries until the sandbox is closed and no child is left.
    fn keep(&self, watched: &WatchedThread) {
        let mut state = self.state();
        loop {
            watched.ping();
            failpoint::reach("sandbox::keep");
            // The kernel ends processes in its own time.
            state = watched.waiting(|| self.bury(state));
            if state.closed {
                let idle = state.warm.len();
                let mut idle: Vec<Process> = state.warm.drain(..).take(idle).collect();
                state.lent += idle.len();
                state.used.append(&mut idle);
                if state.lent == 0 {
                    state.over = true;
                    self.changed.notify_all();
                    return;
                }
                if state.used.is_empty() {
                    self.changed.wait_for(&mut state, LOOK_EVERY);
                }
                continue;
            }
            match self.start_after(&state) {
                Some(pause) if pause.is_zero() => {
                    drop(state);
                    let start = || {
                        let folder = self.folders.as_ref().map(Folders::child).transpose()?;
                        Process::start(&self.options, folder, self.zones.path())
                    };
                    let started = watched.waiting(start);
                    match started {
                        Ok(process) => {
                            state = self.state();
                            state.warm.push_back(process);
                            self.changed.notify_all();
                        }
                        Err(error) => {
                            self.not_started(error.to_string());
                            state = self.state();
                        }
                    }
                }
                pause => {
                    let wait = pause.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
                    if self.changed.wait_for(&mut state, wait).timed_out() {
                        state = self.drop_dead(state);
                    }
                }
            }
        }
    }

    /// How long until the next child is to be started; `None` if there are enough.
    fn start_after(&self, state: &State) -> Option<Duration> {
        let free = self.options.children_max.saturating_sub(state.lent);
        let wanted = self.options.warm.max(state.waiting.min(free));
        if state.warm.len() >= wanted {
            return None;
        }
        let at = state.failed.as_ref().map(|(_, _, at)| *at);
        Some(at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())))
    }

    /// Ends those that were given back, without the lock.
    fn bury<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while !state.used.is_empty() {
            let used = std::mem::take(&mut state.used);
            drop(state);
            let count = used.len();
            used.into_iter().for_each(Process::end);
            state = self.state();
            state.lent -= count;
            self.changed.notify_all();
        }
        state
    }

    /// Counts the waiting children that have died as used.
    fn drop_dead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (dead, alive): (Vec<_>, Vec<_>) = state.warm.drain(..).partition(Process::is_gone);
        state.warm = alive.into();
        if dead.is_empty() {
            return state;
        }
        state.lent += dead.len();
        state.used.extend(dead);
        drop(state);
        self.not_started("it ended while it waited for a query".to_owned());
        self.state()
    }
}
