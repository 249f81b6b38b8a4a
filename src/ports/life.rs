//! Signs of life of threads that must not stand still, for a watchdog.
//!
//! A thread gives a sign each time round, and says when it waits for somebody else: a store that is slow or away is no
//! reason to call the thread dead. What it waits for has timeouts of its own; only far beyond them is a wait held to be
//! a hang.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time of a thread's own work between two signs.
pub const OWN_WORK_MAX: Duration = Duration::from_secs(10);
/// Longest wait for one answer of a store: every client gives up long before.
pub const ANSWER_MAX: Duration = Duration::from_secs(600);

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Working,
    /// It waits for somebody else.
    Waiting,
    /// It has ended, and should not have while the process is at work.
    Ended,
    /// It has ended as it should.
    Gone,
}

#[derive(Debug)]
struct Thread {
    name: &'static str,
    waiting_max: Duration,
    now: Mutex<(Doing, Instant)>,
}

impl Thread {
    fn set(&self, doing: Doing) {
        *self.lock() = (doing, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, (Doing, Instant)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of a process that are watched.
#[derive(Debug, Default)]
pub struct LifeSigns {
    threads: Mutex<Vec<Arc<Thread>>>,
}

/// A thread's end: it gives the signs, and tells by its drop that the thread is over.
#[derive(Debug)]
pub struct Pulse {
    thread: Arc<Thread>,
    /// The thread may end before the process does.
    passing: bool,
}

/// A thread without a sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub thread: &'static str,
    /// `None`: the thread has ended.
    pub since: Option<Duration>,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.since {
            Some(since) => {
                write!(f, "the thread `{}` has shown no sign of life for {} s", self.thread, since.as_secs())
            }
            None => write!(f, "the thread `{}` has ended", self.thread),
        }
    }
}

impl LifeSigns {
    /// Watches a thread that lasts as long as the process is at work. `waiting_max`: its longest wait for others.
    pub fn watch(&self, name: &'static str, waiting_max: Duration) -> Pulse {
        self.add(name, waiting_max, false)
    }

    /// Watches a thread that comes and goes.
    pub fn watch_passing(&self, name: &'static str, waiting_max: Duration) -> Pulse {
        self.add(name, waiting_max, true)
    }

    fn add(&self, name: &'static str, waiting_max: Duration, passing: bool) -> Pulse {
        let thread = Arc::new(Thread { name, waiting_max, now: Mutex::new((Doing::Working, Instant::now())) });
        let mut threads = self.lock();
        // So that those that come and go don't gather.
        threads.retain(|thread| thread.lock().0 != Doing::Gone);
        threads.push(Arc::clone(&thread));
        Pulse { thread, passing }
    }

    /// The threads that have been silent for too long. `ending`: the process is told to end, and so threads may.
    pub fn silent(&self, ending: bool) -> Vec<Silence> {
        let look = |thread: &Arc<Thread>| {
            let (doing, since) = *thread.lock();
            let longest = match doing {
                Doing::Working => OWN_WORK_MAX,
                Doing::Waiting => thread.waiting_max,
                Doing::Ended if ending => return None,
                Doing::Ended => return Some(Silence { thread: thread.name, since: None }),
                Doing::Gone => return None,
            };
            let since = since.elapsed();
            (since > longest).then_some(Silence { thread: thread.name, since: Some(since) })
        };
        self.lock().iter().filter_map(look).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Thread>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pulse {
    /// A thread that nobody watches.
    pub fn unwatched() -> Self {
        LifeSigns::default().watch_passing("unwatched", Duration::MAX)
    }

    /// A sign of life.
    pub fn beat(&self) {
        self.thread.set(Doing::Working);
    }

    /// Does what waits for somebody else: a store, an event, a bell.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        /// A wait that panics is over too.
        struct Over<'a>(&'a Thread);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.set(Doing::Working);
            }
        }
        self.thread.set(Doing::Waiting);
        let _over = Over(&self.thread);
        wait()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.thread.set(if self.passing { Doing::Gone } else { Doing::Ended });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(signs: &LifeSigns) -> Vec<&'static str> {
        signs.silent(false).iter().map(|silence| silence.thread).collect()
    }

    /// Lets the thread's last sign be `age` old.
    fn age(pulse: &Pulse, age: Duration) {
        let mut now = pulse.thread.lock();
        now.1 = Instant::now().checked_sub(age).unwrap();
    }

    #[test]
    fn own_work_without_a_sign_is_silence_and_a_wait_for_others_is_none() {
        let signs = LifeSigns::default();
        let pulse = signs.watch("a", ANSWER_MAX);
        assert!(silent(&signs).is_empty());
        age(&pulse, OWN_WORK_MAX + Duration::from_secs(1));
        assert_eq!(signs.silent(false)[0].to_string(), "the thread `a` has shown no sign of life for 11 s");
        pulse.beat();
        assert!(silent(&signs).is_empty());
        pulse.waiting(|| {
            age(&pulse, OWN_WORK_MAX + Duration::from_secs(1));
            assert!(silent(&signs).is_empty());
            age(&pulse, ANSWER_MAX + Duration::from_secs(1));
            assert_eq!(silent(&signs), ["a"]);
        });
        assert!(silent(&signs).is_empty(), "the end of a wait is a sign");
    }

    #[test]
    fn a_thread_that_ended_is_missed_unless_it_may_end() {
        let signs = LifeSigns::default();
        drop(signs.watch("claimer", ANSWER_MAX));
        drop(signs.watch_passing("keeper", ANSWER_MAX));
        assert_eq!(signs.silent(false)[0].to_string(), "the thread `claimer` has ended");
        assert_eq!(silent(&signs), ["claimer"]);
        assert_eq!(signs.silent(true), []);
        for _ in 0..10 {
            drop(signs.watch_passing("keeper", ANSWER_MAX));
        }
        assert_eq!(signs.lock().len(), 2, "those that are gone don't gather");
    }
}
