//! Threads beside the body of a test, which end with it, however it ends.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the body that a loop runs beside is still on.
pub struct Body {
    ended: AtomicBool,
}

impl Body {
    pub fn is_on(&self) -> bool {
        !self.ended.load(Ordering::SeqCst)
    }
}

/// Tells the loops when it is dropped: also by an assertion that fails.
struct Ends<'a>(&'a Body);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }
}

/// Runs `body`, and beside it `threads` threads of `run`, which is given its number and must return soon once the body is
/// no longer on. A flag that the body sets at its end would not do: an assertion that fails leaves it unset, and the scope
/// waits for its threads.
pub fn beside<T>(threads: usize, run: impl Fn(usize, &Body) + Sync, body: impl FnOnce() -> T) -> T {
    let state = Body { ended: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let _ends = Ends(&state);
        for number in 0..threads {
            let (run, state) = (&run, &state);
            scope.spawn(move || run(number, state));
        }
        body()
    })
}

/// Runs `act` in threads that begin together, each with its number and what `open` gave it. Gives their results in order.
/// All is opened before the first thread starts: one that fails to would have the others wait for it.
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
