//! Threads that run during the body of a test, and end with it even if it fails.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the body is still running.
pub struct Body {
    ended: AtomicBool,
}

impl Body {
    pub fn is_running(&self) -> bool {
        !self.ended.load(Ordering::SeqCst)
    }
}

/// Stops the loops when dropped: also after a failed assertion.
struct StopGuard<'a>(&'a Body);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }
}

/// Runs `body`, and concurrently `threads` threads of `run`, which gets its number and must return soon after the body
/// ends. A flag set at the end of the body would not do: a failed assertion leaves it unset, and the scope joins its
/// threads.
pub fn with_background<T>(threads: usize, run: impl Fn(usize, &Body) + Sync, body: impl FnOnce() -> T) -> T {
    let state = Body { ended: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let _ends = StopGuard(&state);
        for number in 0..threads {
            let (run, state) = (&run, &state);
            scope.spawn(move || run(number, state));
        }
        body()
    })
}

/// Runs `act` in threads that start together, each with its number and its result of `open`. Returns their results in
/// order. All are opened before the first thread starts: one that fails to open would block the others.
pub fn race<H: Send, T: Send>(threads: usize, open: impl Fn() -> H, act: impl Fn(usize, &H) -> T + Sync) -> Vec<T> {
    let handles: Vec<H> = (0..threads).map(|_| open()).collect();
    let (barrier, act) = (&Barrier::new(threads), &act);
    std::thread::scope(|scope| {
        let start = |(number, handle): (usize, H)| {
            scope.spawn(move || {
                barrier.wait();
                act(number, &handle)
            })
        };
        let threads: Vec<_> = handles.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
