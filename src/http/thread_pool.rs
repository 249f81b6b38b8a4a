//! Threads on demand: started if a job finds no idle thread, ended after an idle period.
//!
//! Invariant: never more threads than the bound; a job that panics doesn't end its thread.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Time after which an idle thread ends.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) type HandlerTask = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<HandlerTask>,
    idle: usize,
    threads: usize,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// A pool of threads with one name.
#[derive(Clone)]
pub(super) struct ThreadPool {
    queue: Arc<Queue>,
    name: &'static str,
    stack_bytes: usize,
    threads_max: usize,
}

impl ThreadPool {
    pub(super) fn new(name: &'static str, stack_bytes: usize, threads_max: usize) -> Self {
        Self { queue: Arc::default(), name, stack_bytes, threads_max }
    }

    /// Runs `job` on an idle or a new thread, or once a thread is free.
    ///
    /// # Errors
    /// The pool is closed, or it has no thread and none could be started; the job is dropped.
    pub(super) fn run(&self, job: HandlerTask) -> io::Result<()> {
        let mut state = self.queue.state.lock();
        if state.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads >= self.threads_max {
            self.queue.changed.notify_one();
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let queue = Arc::clone(&self.queue);
        let builder = std::thread::Builder::new().name(self.name.into()).stack_size(self.stack_bytes);
        builder.spawn(move || work(&queue)).map(drop).or_else(|error| {
            let mut state = self.queue.state.lock();
            state.threads -= 1;
            if state.threads > 0 {
                return Ok(());
            }
            let dropped = std::mem::take(&mut state.jobs);
            drop(state);
            drop(dropped);
            Err(error)
        })
    }

    /// Drops the jobs that wait. Threads end with their jobs.
    pub(super) fn close(&self) {
        let mut state = self.queue.state.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.jobs);
        drop(state);
        drop(dropped);
        self.queue.changed.notify_all();
    }
}

fn work(queue: &Queue) {
    let mut state = queue.state.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("serving a connection panicked");
            }
            state = queue.state.lock();
            continue;
        }
        if state.closed {
            break;
        }
        state.idle += 1;
        let wait = queue.changed.wait_for(&mut state, IDLE_TIME_MAX);
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
    fn threads_are_bounded_and_every_job_runs() {
        let pool = ThreadPool::new("test", 128 << 10, 2);
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
        assert_eq!(pool.queue.state.lock().threads, 2);
        assert!(finished.recv_timeout(Duration::from_millis(20)).is_err(), "both threads are held");
        drop(hold);
        let mut all: Vec<i32> = (0..10).map(|_| finished.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        pool.close();
        assert!(pool.run(Box::new(|| {})).is_err());
    }

    #[test]
    fn panicking_job_leaves_its_thread_alive() {
        let pool = ThreadPool::new("test", 128 << 10, 1);
        let (done, finished) = unbounded();
        pool.run(Box::new(|| panic!("on purpose"))).unwrap();
        pool.run(Box::new(move || done.send(()).unwrap())).unwrap();
        finished.recv_timeout(Duration::from_secs(10)).unwrap();
        pool.close();
    }
}
