//! Health checks of dependencies: bounded in time, shared by concurrent callers, and cached.
//!
//! Anyone may request readiness, and a hanging dependency responds only after its client's timeouts. So at most one check
//! runs at a time, on its own thread, and no caller waits for it longer than [`WAIT_MAX`].

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a check may take before its dependency counts as unavailable. A probe is answered within 2 s.
pub const WAIT_MAX: Duration = Duration::from_millis(1_500);
/// Age up to which a result is served without another check.
pub const MAX_AGE: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct State<T> {
    latest: Option<(Instant, T)>,
    /// When the running check started.
    running: Option<Instant>,
}

/// The latest result of a check, and the check in progress.
#[derive(Debug)]
pub struct CachedHealthCheck<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

impl<T> Default for CachedHealthCheck<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { latest: None, running: None }), ended: Condvar::new() }
    }
}

/// A check that was started or joined.
#[derive(Debug)]
pub struct PendingCheck<T> {
    owner: Arc<CachedHealthCheck<T>>,
    started: Instant,
    cached: Option<T>,
}

impl<T: Clone + Send + 'static> CachedHealthCheck<T> {
    /// Takes a result that is younger than `max_age`, joins the running check, or starts one.
    pub fn begin(self: &Arc<Self>, max_age: Duration, check: impl FnOnce() -> T + Send + 'static) -> PendingCheck<T> {
        let owner = Arc::clone(self);
        let mut state = self.lock();
        if let Some((at, result)) = &state.latest
            && at.elapsed() < max_age
        {
            return PendingCheck { owner, started: *at, cached: Some(result.clone()) };
        }
        if let Some(started) = state.running {
            return PendingCheck { owner, started, cached: None };
        }
        let started = Instant::now();
        state.running = Some(started);
        drop(state);
        let running = Running(Arc::clone(self));
        let spawned = std::thread::Builder::new().name("health-check".into()).spawn(move || {
            let result = check();
            running.0.lock().latest = Some((Instant::now(), result));
        });
        if let Err(error) = spawned {
            // The guard was dropped with the closure, so the check has ended without a result.
            tracing::warn!(%error, "health check failed: no thread");
        }
        PendingCheck { owner, started, cached: None }
    }

    /// [`CachedHealthCheck::begin`], and waits for the result.
    pub fn result(self: &Arc<Self>, max_age: Duration, check: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.begin(max_age, check).wait()
    }
}

impl<T> CachedHealthCheck<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

impl<T: Clone> PendingCheck<T> {
    /// The result, or `None` if there is none within [`WAIT_MAX`] of the check's start.
    pub fn wait(self) -> Option<T> {
        if self.cached.is_some() {
            return self.cached;
        }
        let left = (self.started + WAIT_MAX).saturating_duration_since(Instant::now());
        let own = |state: &mut State<T>| state.running == Some(self.started);
        let mut state = self.owner.lock();
        self.owner.ended.wait_while_for(&mut state, own, left);
        state.latest.as_ref().filter(|(at, _)| *at >= self.started).map(|(_, result)| result.clone())
    }
}

/// Marks the check as ended when dropped, after a panic too.
struct Running<T>(Arc<CachedHealthCheck<T>>);

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.lock().running = None;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn await_end<T>(check: &CachedHealthCheck<T>) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while check.lock().running.is_some() {
            assert!(Instant::now() < deadline, "the check runs on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn hung_check_is_unavailable_and_not_started_twice() {
        let check = Arc::<CachedHealthCheck<u8>>::default();
        let (release, held) = mpsc::channel::<()>();
        let first = check.begin(Duration::ZERO, move || {
            let _ = held.recv();
            7
        });
        assert_eq!(first.wait(), None);
        assert_eq!(check.result(Duration::ZERO, || unreachable!()), None, "one is running");
        drop(release);
        await_end(&check);
        assert_eq!(check.result(LONG, || unreachable!()), Some(7), "its result is cached");
    }

    #[test]
    fn concurrent_callers_share_one_check() {
        let check = Arc::<CachedHealthCheck<u8>>::default();
        let (release, held) = mpsc::channel::<()>();
        let first = check.begin(LONG, move || {
            let _ = held.recv();
            7
        });
        let second = check.begin(LONG, || unreachable!());
        drop(release);
        assert_eq!((first.wait(), second.wait()), (Some(7), Some(7)));
    }

    #[test]
    fn panicking_check_is_unavailable_and_the_next_one_runs() {
        let check = Arc::<CachedHealthCheck<u8>>::default();
        assert_eq!(check.result(Duration::ZERO, || panic!("on purpose")), None);
        await_end(&check);
        assert_eq!(check.result(Duration::ZERO, || 7), Some(7));
    }
}
