//! Detects threads that hang.
//!
//! A watched thread pings in each round of its loop, and marks its waits for others: waiting for a slow or unavailable
//! store is not a hang. The calls in a wait have their own timeouts; only a wait far beyond them counts as a hang.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Longest work of a thread between two pings.
pub const WORK_MAX: Duration = Duration::from_secs(10);
/// Longest wait for one response of a store; every client times out long before.
pub const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Working,
    /// Waiting for a store, an event or another thread.
    Waiting,
    /// Ended, though the process still needs it.
    Ended,
    /// Ended as intended.
    Finished,
}

#[derive(Debug)]
struct Thread {
    name: &'static str,
    wait_max: Duration,
    activity: Mutex<(Activity, Instant)>,
}

impl Thread {
    fn set(&self, activity: Activity) {
        *self.activity.lock() = (activity, Instant::now());
    }
}

/// The watched threads of a process.
#[derive(Debug, Default)]
pub struct Watchdog {
    threads: Mutex<Vec<Arc<Thread>>>,
}

/// The handle through which a thread pings; dropping it records the thread's end.
#[derive(Debug)]
pub struct WatchedThread {
    thread: Arc<Thread>,
    /// May end before the process does.
    short_lived: bool,
}

/// A thread that hangs or has ended unexpectedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StalledThread {
    pub thread: &'static str,
    /// Time since the last ping; `None` if the thread has ended.
    pub since: Option<Duration>,
}

impl fmt::Display for StalledThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.since {
            Some(since) => write!(f, "the thread `{}` has not responded for {} s", self.thread, since.as_secs()),
            None => write!(f, "the thread `{}` has ended", self.thread),
        }
    }
}

impl Watchdog {
    /// Watches a thread that must run as long as the process. `wait_max`: its longest wait.
    pub fn watch(&self, name: &'static str, wait_max: Duration) -> WatchedThread {
        self.add(name, wait_max, false)
    }

    /// Watches a thread that may end earlier.
    pub fn watch_short_lived(&self, name: &'static str, wait_max: Duration) -> WatchedThread {
        self.add(name, wait_max, true)
    }

    fn add(&self, name: &'static str, wait_max: Duration, short_lived: bool) -> WatchedThread {
        let activity = Mutex::new((Activity::Working, Instant::now()));
        let thread = Arc::new(Thread { name, wait_max, activity });
        let mut threads = self.threads.lock();
        threads.retain(|thread| thread.activity.lock().0 != Activity::Finished);
        threads.push(Arc::clone(&thread));
        WatchedThread { thread, short_lived }
    }

    /// The stalled threads. `stopping`: the process is shutting down, so that any thread may end.
    pub fn stalled(&self, stopping: bool) -> Vec<StalledThread> {
        let check = |thread: &Arc<Thread>| {
            let (activity, since) = *thread.activity.lock();
            let max = match activity {
                Activity::Working => WORK_MAX,
                Activity::Waiting => thread.wait_max,
                Activity::Ended if stopping => return None,
                Activity::Ended => return Some(StalledThread { thread: thread.name, since: None }),
                Activity::Finished => return None,
            };
            let since = since.elapsed();
            (since > max).then_some(StalledThread { thread: thread.name, since: Some(since) })
        };
        self.threads.lock().iter().filter_map(check).collect()
    }
}

impl WatchedThread {
    /// A handle that no watchdog checks.
    pub fn unwatched() -> Self {
        Watchdog::default().watch_short_lived("unwatched", Duration::MAX)
    }

    /// Records that the thread is alive.
    pub fn ping(&self) {
        self.thread.set(Activity::Working);
    }

    /// Runs `wait`, which waits for a store, an event or another thread.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        // A drop guard, so that a panic ends the wait too.
        struct WaitGuard<'a>(&'a Thread);
        impl Drop for WaitGuard<'_> {
            fn drop(&mut self) {
                self.0.set(Activity::Working);
            }
        }
        self.thread.set(Activity::Waiting);
        let _guard = WaitGuard(&self.thread);
        wait()
    }
}

impl Drop for WatchedThread {
    fn drop(&mut self) {
        self.thread.set(if self.short_lived { Activity::Finished } else { Activity::Ended });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalled(watchdog: &Watchdog) -> Vec<&'static str> {
        watchdog.stalled(false).iter().map(|stalled| stalled.thread).collect()
    }

    fn age_last_ping(watched: &WatchedThread, age: Duration) {
        watched.thread.activity.lock().1 = Instant::now().checked_sub(age).unwrap();
    }

    #[test]
    fn work_without_ping_stalls_and_a_wait_does_not() {
        let watchdog = Watchdog::default();
        let watched = watchdog.watch("a", RESPONSE_WAIT_MAX);
        assert!(stalled(&watchdog).is_empty());
        age_last_ping(&watched, WORK_MAX + Duration::from_secs(1));
        assert_eq!(watchdog.stalled(false)[0].to_string(), "the thread `a` has not responded for 11 s");
        watched.ping();
        assert!(stalled(&watchdog).is_empty());
        watched.waiting(|| {
            age_last_ping(&watched, WORK_MAX + Duration::from_secs(1));
            assert!(stalled(&watchdog).is_empty());
            age_last_ping(&watched, RESPONSE_WAIT_MAX + Duration::from_secs(1));
            assert_eq!(stalled(&watchdog), ["a"]);
        });
        assert!(stalled(&watchdog).is_empty(), "the end of a wait counts as a ping");
    }

    #[test]
    fn ended_thread_is_stalled_unless_it_may_end() {
        let watchdog = Watchdog::default();
        drop(watchdog.watch("claimer", RESPONSE_WAIT_MAX));
        drop(watchdog.watch_short_lived("heartbeat", RESPONSE_WAIT_MAX));
        assert_eq!(watchdog.stalled(false)[0].to_string(), "the thread `claimer` has ended");
        assert_eq!(stalled(&watchdog), ["claimer"]);
        assert_eq!(watchdog.stalled(true), []);
        for _ in 0..10 {
            drop(watchdog.watch_short_lived("heartbeat", RESPONSE_WAIT_MAX));
        }
        assert_eq!(watchdog.threads.lock().len(), 2, "finished threads are removed");
    }
}
