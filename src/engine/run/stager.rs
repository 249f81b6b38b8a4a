//! Stages finished files while others are still converted, so that publishing is short.
//!
//! Must not: make objects visible, or decide which are published. Publishing retries failures and reports them.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::thread::{Builder, Scope};

use super::request::RunRequest;
use crate::domain::layout::pipeline_prefix;
use crate::engine::convert::SpooledFile;
use crate::ports::store::{Bucket, StagedFile};

/// Staging threads: each waits for a disk, or sends several parts of a file in parallel.
const THREADS_MAX: usize = 4;

/// Staged files discarded in parallel when a run fails.
const PARALLEL_DISCARDS_MAX: usize = 32;

/// A file waiting to be staged.
struct QueuedFile {
    /// Key of the object.
    key: String,
    path: PathBuf,
    sha256: String,
}

enum StagingState<'a> {
    Queued,
    InProgress,
    Ready(Box<dyn StagedFile + 'a>),
}

#[derive(Default)]
struct StagerState<'a> {
    /// In order. Files missing in `files` were taken or discarded meanwhile.
    queue: VecDeque<QueuedFile>,
    /// By their path in scratch.
    files: HashMap<PathBuf, StagingState<'a>>,
    threads: usize,
    is_stopped: bool,
}

struct StagerShared<'a> {
    request: &'a RunRequest<'a>,
    state: Mutex<StagerState<'a>>,
    changed: Condvar,
    /// Probes the store's capabilities once.
    asked: Once,
}

/// Stages files on its own threads, which start with the first file and end with the stager.
pub(super) struct Stager<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: Arc<StagerShared<'env>>,
}

impl<'scope, 'env> Stager<'scope, 'env> {
    pub fn new(scope: &'scope Scope<'scope, 'env>, request: &'env RunRequest<'env>) -> Self {
        let shared = StagerShared { request, state: Mutex::default(), changed: Condvar::new(), asked: Once::new() };
        Self { scope, shared: Arc::new(shared) }
    }

    /// Adds a file for the object `key`, relative to the pipeline, unless it was added before.
    pub fn add(&self, key: &str, file: &SpooledFile) {
        let key = format!("{}{key}", pipeline_prefix(self.shared.request.slug()));
        let mut state = self.shared.lock();
        if state.files.contains_key(&file.path) {
            return;
        }
        state.files.insert(file.path.clone(), StagingState::Queued);
        state.queue.push_back(QueuedFile { key, path: file.path.clone(), sha256: file.sha256.clone() });
        if state.threads < THREADS_MAX && state.threads < state.queue.len() {
            let shared = Arc::clone(&self.shared);
            // Without a thread nothing is staged; publishing does all the work.
            let spawned = Builder::new().name("stage".into()).spawn_scoped(self.scope, move || shared.run());
            state.threads += usize::from(spawned.is_ok());
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// The staged file, if any. Waits while the file is being staged; one not yet started is left to the caller.
    pub fn take(&self, path: &Path) -> Option<Box<dyn StagedFile + 'env>> {
        let mut state = self.shared.lock();
        while let Some(StagingState::InProgress) = state.files.get(path) {
            self.shared.wait(&mut state);
        }
        state.files.remove(path).and_then(StagingState::ready)
    }

    /// Discards the files of a scratch folder.
    pub fn discard_folder(&self, folder: &Path) {
        let mut state = self.shared.lock();
        let is_under_way = |(path, stage): (&PathBuf, &StagingState<'_>)| {
            matches!(stage, StagingState::InProgress) && path.starts_with(folder)
        };
        while state.files.iter().any(is_under_way) {
            self.shared.wait(&mut state);
        }
        let forgotten = state.files.extract_if(|path, _| path.starts_with(folder));
        let dropped = forgotten.filter_map(|(_, stage)| stage.ready()).collect();
        drop(state);
        discard(dropped);
    }
}

impl<'a> StagingState<'a> {
    fn ready(self) -> Option<Box<dyn StagedFile + 'a>> {
        match self {
            Self::Ready(staged) => Some(staged),
            Self::Queued | Self::InProgress => None,
        }
    }
}

impl Drop for Stager<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_stopped = true;
        let dropped = std::mem::take(&mut state.files).into_values().filter_map(StagingState::ready).collect();
        drop(state);
        self.shared.changed.notify_all();
        discard(dropped);
    }
}

/// Discards staged files in parallel, since each may take a request.
fn discard(staged: Vec<Box<dyn StagedFile + '_>>) {
    let threads = staged.len().min(PARALLEL_DISCARDS_MAX);
    let left = Mutex::new(staged);
    let discard = || {
        while let Some(one) = { left.lock().pop() } {
            drop(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread can't be spawned, the others do its work.
            let _ = Builder::new().spawn_scoped(scope, discard);
        }
        discard();
    });
}

impl<'env> StagerShared<'env> {
    fn lock(&self) -> MutexGuard<'_, StagerState<'env>> {
        self.state.lock()
    }

    fn wait(&self, state: &mut MutexGuard<'_, StagerState<'env>>) {
        self.changed.wait(state);
    }

    /// The loop of one thread.
    fn run(&self) {
        let mut state = self.lock();
        while !state.is_stopped {
            let Some(file) = state.queue.pop_front() else {
                self.wait(&mut state);
                continue;
            };
            match state.files.get_mut(&file.path) {
                Some(stage) => *stage = StagingState::InProgress,
                None => continue,
            }
            drop(state);
            let staged = self.stage(&file);
            state = self.lock();
            state.files.remove(&file.path);
            match staged {
                Some(staged) if !state.is_stopped => {
                    state.files.insert(file.path, StagingState::Ready(staged));
                }
                // Not under the lock, since discarding may take a request.
                unwanted => {
                    drop(state);
                    drop(unwanted);
                    state = self.lock();
                }
            }
            self.changed.notify_all();
        }
    }

    fn stage(&self, file: &QueuedFile) -> Option<Box<dyn StagedFile + 'env>> {
        let request = self.request;
        let keep_going = || !self.lock().is_stopped && request.observer.check().is_ok();
        if !keep_going() {
            return None;
        }
        self.asked.call_once(|| {
            // Warms the store's cache of probed capabilities for publishing.
            let _ = request.store.capabilities();
        });
        let (bucket, key) = (Bucket::Warehouse, &file.key);
        match request.store.stage_file(bucket, key, &file.path, &file.sha256, request.lease, &keep_going) {
            Ok(staged) => staged,
            Err(error) => {
                tracing::debug!(key, %error, "staging failed; publishing will retry");
                None
            }
        }
    }
}
