//! Threads on demand: started when work finds none idle, ended when idle for a while.
//!
//! Invariant: never more threads than the bound; a job that panics doesn't take its thread with it.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// An idle thread ends after this.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    closed: bool,
}

struct Inside {
    state: Mutex<State>,
    work: Condvar,
}

impl Inside {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A pool of threads with one name.
#[derive(Clone)]
pub(super) struct Pool {
    inside: Arc<Inside>,
    name: &'static str,
    stack_bytes: usize,
    threads_max: usize,
}

impl Pool {
    pub(super) fn new(name: &'static str, stack_bytes: usize, threads_max: usize) -> Self {
        let inside = Arc::new(Inside { state: Mutex::default(), work: Condvar::new() });
        Self { inside, name, stack_bytes, threads_max }
    }

    /// Runs `job` on an idle or a new thread, or once a thread is free.
    ///
    /// # Errors
    /// No thread could be started and none is there; the job is dropped.
    pub(super) fn run(&self, job: Job) -> io::Result<()> {
        let mut state = self.inside.lock();
        if state.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads >= self.threads_max {
            self.inside.work.notify_one();
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let inside = Arc::clone(&self.inside);
        let builder = std::thread::Builder::new().name(self.name.into()).stack_size(self.stack_bytes);
        builder.spawn(move || work(&inside)).map(drop).or_else(|error| {
            let mut state = self.inside.lock();
            state.threads -= 1;
            if state.threads > 0 {
                return Ok(());
            }
            let orphans = std::mem::take(&mut state.jobs);
            drop(state);
            drop(orphans);
            Err(error)
        })
    }

    /// Drops what waits, and ends the threads when they are done.
    pub(super) fn close(&self) {
        let mut state = self.inside.lock();
        state.closed = true;
        let orphans = std::mem::take(&mut state.jobs);
        drop(state);
        drop(orphans);
        self.inside.work.notify_all();
    }
}

fn work(inside: &Inside) {
    let mut state = inside.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a job of the http server panicked");
            }
            state = inside.lock();
            continue;
        }
        if state.closed {
            break;
        }
        state.idle += 1;
        let wait = inside.work.wait_for(&mut state, IDLE_TIME_MAX);
        state.idle -= 1;
        if wait.timed_out() && state.jobs.is_empty() {
            break;
        }
    }
    state.threads -= 1;
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{bounded, unbounded};

    use super::*;

    #[test]
    fn no_more_threads_than_the_bound_and_every_job_runs() {
        let pool = Pool::new("test", 128 << 10, 2);
        let (done, finished) = unbounded();
        let (hold, held) = bounded::<()>(0);
        for at in 0..10 {
            let (done, held) = (done.clone(), held.clone());
            pool.run(Box::new(move || {
                if at < 2 {
                    let _ = held.recv();
                }
                done.send(at).unwrap();
            }))
            .unwrap();
        }
        assert_eq!(pool.inside.lock().threads, 2);
        assert!(finished.recv_timeout(Duration::from_millis(20)).is_err(), "both threads are held");
        drop(hold);
        let mut all: Vec<i32> = (0..10).map(|_| finished.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        pool.close();
        assert!(pool.run(Box::new(|| {})).is_err());
    }

    #[test]
    fn a_job_that_panics_leaves_its_thread_alive() {
        let pool = Pool::new("test", 128 << 10, 1);
        let (done, finished) = unbounded();
        pool.run(Box::new(|| panic!("on purpose"))).unwrap();
        pool.run(Box::new(move || done.send(()).unwrap())).unwrap();
        finished.recv_timeout(Duration::from_secs(10)).unwrap();
        pool.close();
    }
}
