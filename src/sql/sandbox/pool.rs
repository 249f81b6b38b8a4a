//! Lends children, one unit of work each.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::SandboxOptions;
use super::client::Child;
use super::error::SandboxError;
use super::folders::StagingFolder;
use super::supervisor::Supervisor;
use super::task::Confinement;
use crate::runtime::WatchedThread;

/// Timeout for a child to become ready.
const START_MAX: Duration = Duration::from_secs(20);
/// How long dropping a sandbox waits for the end of its children.
const END_MAX: Duration = Duration::from_secs(5);

/// A pool of processes for users' SQL.
pub struct Sandbox {
    supervisor: Arc<Supervisor>,
    version: OnceLock<String>,
    thread: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Makes the folders, clears leftovers of dead processes, and starts the first children in the background.
    ///
    /// # Errors
    /// `lakemill-sql` is missing, the folder can't be used, or the thread can't be started.
    pub fn start(options: SandboxOptions) -> Result<Self, SandboxError> {
        Self::start_watched(options, WatchedThread::unwatched())
    }

    /// Like [`Sandbox::start`]; the thread of the children pings `watched`.
    ///
    /// # Errors
    /// Same as for [`Sandbox::start`].
    pub fn start_watched(options: SandboxOptions, watched: WatchedThread) -> Result<Self, SandboxError> {
        options.program.find().map_err(|reason| SandboxError::Start { reason })?;
        let supervisor = Arc::new(Supervisor::new(options)?);
        let shared = Arc::clone(&supervisor);
        let thread = std::thread::Builder::new()
            .name("sql-keeper".to_owned())
            .spawn(move || shared.run(&watched))
            .map_err(|error| SandboxError::Start { reason: format!("starting a thread: {error}") })?;
        Ok(Self { supervisor, version: OnceLock::new(), thread: Some(thread) })
    }

    /// Whether the last child was fully confined; before the first, whether the kernel has Landlock.
    pub fn is_confined(&self) -> bool {
        self.supervisor.is_confined()
    }

    /// The confinement of the child that was borrowed last; `None` before the first.
    pub fn confinement(&self) -> Option<Confinement> {
        self.supervisor.confinement()
    }

    /// DuckDB's version, as `1.5.6`; asks a child once.
    ///
    /// # Errors
    /// Same as for [`Sandbox::child`]; the child doesn't answer.
    pub fn duckdb_version(&self, wait: Duration) -> Result<String, SandboxError> {
        if let Some(known) = self.version.get() {
            return Ok(known.clone());
        }
        let found = self.child(wait)?.duckdb_version(Instant::now() + wait)?;
        Ok(self.version.get_or_init(|| found).clone())
    }

    /// Children that are borrowed now.
    pub fn borrowed(&self) -> u64 {
        self.supervisor.state.lock().borrowed as u64
    }

    /// Creates a folder on the children's file system, in which files are staged before a child is borrowed.
    ///
    /// # Errors
    /// It can't be created.
    pub fn staging(&self) -> Result<StagingFolder, SandboxError> {
        match &self.supervisor.folders {
            Some(folders) => folders.staging(),
            None => Err(SandboxError::Failed { message: "expression processes have no folder".to_owned() }),
        }
    }

    /// Borrows a child for one unit of work, waiting up to `wait` for a free one.
    ///
    /// # Errors
    /// [`SandboxError::Busy`] if all were in use for that long; [`SandboxError::Start`] if none can be started;
    /// [`SandboxError::OtherBuild`], at once, if the program was replaced by one of another build.
    pub fn child(&self, wait: Duration) -> Result<Child, SandboxError> {
        let until = Instant::now() + wait;
        loop {
            let process = self.supervisor.take(wait, until)?;
            let mut child = Child::new(process, Arc::clone(&self.supervisor));
            match child.ready(Instant::now() + START_MAX) {
                Ok(confinement) => {
                    self.supervisor.started(confinement);
                    return Ok(child);
                }
                Err(error @ SandboxError::OtherBuild { .. }) => {
                    drop(child);
                    self.supervisor.start_failed(error.to_string());
                    return Err(error);
                }
                Err(error) => {
                    let stderr = child.stderr();
                    let reason = stderr.map_or_else(|| error.to_string(), |stderr| format!("{error}: {stderr}"));
                    drop(child);
                    self.supervisor.start_failed(reason);
                }
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let state = &self.supervisor.state;
        state.update(|state| state.closed = true);
        let finished = state.wait(END_MAX, |state| (state.finished || state.borrowed > 0).then_some(state.finished));
        // The last owner removes the folder: joining makes that the caller.
        if let (Some(true), Some(thread)) = (finished, self.thread.take()) {
            let _ = thread.join();
        }
    }
}
