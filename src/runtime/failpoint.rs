//! Named points at which a test kills or stops the process.
//!
//! Without the feature `failpoints` they compile to nothing. With it, `FAILPOINTS` in the environment configures them in
//! the syntax of the `fail` crate: `publish::between_puts=3*off->return(kill)` kills the process at the fourth hit.
//! - `return(kill)`: the process gets SIGKILL;
//! - `return(stop)`: the process gets SIGSTOP;
//! - `sleep(ms)`, `panic` and the other actions of the crate.
//!
//! Kills and stops are logged, so that a test can count them.

/// Evaluates the failpoint `name`.
#[inline]
pub fn reach(name: &str) {
    #[cfg(feature = "failpoints")]
    fail::eval(name, |act| match act.as_deref() {
        Some("kill") => {
            tracing::warn!(place = name, "a failpoint kills the process");
            signal(rustix::process::Signal::KILL);
        }
        Some("stop") => {
            tracing::warn!(place = name, "a failpoint stops the process");
            let _exclusive = UNSTOPPABLE.write();
            signal(rustix::process::Signal::STOP);
            // SIGSTOP reaches other threads with a delay; this one must not continue meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        Some(_) | None => {}
    });
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

/// Runs `work` without being stopped by a failpoint of another thread: the process must not be stopped while it holds
/// the lock of a database. `work` must not reach a failpoint that stops.
#[inline]
pub fn without_failpoints<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(feature = "failpoints")]
    let _shared = UNSTOPPABLE.read();
    work()
}

#[cfg(feature = "failpoints")]
static UNSTOPPABLE: parking_lot::RwLock<()> = parking_lot::RwLock::new(());

/// The number that a test configured: `clock::ahead_ms=return(600000)`.
#[cfg(feature = "failpoints")]
pub fn number(name: &str) -> Option<i64> {
    fail::eval(name, |act| act.and_then(|text| text.parse().ok())).flatten()
}

/// The milliseconds that a test configured; `None` without the feature.
pub fn millis(name: &str) -> Option<std::time::Duration> {
    #[cfg(feature = "failpoints")]
    let ms = number(name);
    #[cfg(not(feature = "failpoints"))]
    let ms: Option<i64> = {
        let _ = name;
        None
    };
    ms.map(|ms| std::time::Duration::from_millis(ms.unsigned_abs()))
}

#[cfg(feature = "failpoints")]
fn signal(signal: rustix::process::Signal) {
    // A process may always signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
}
