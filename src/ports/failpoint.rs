//! Named places at which a test makes the process die or stand still.
//!
//! Without the feature `failpoints` nothing is left of them. With it, `FAILPOINTS` in the environment says what happens
//! where, in the syntax of the `fail` crate: `publish::between_puts=3*off->return(kill)` dies at the fourth arrival.
//! - `return(kill)`: the process is killed, as by `kill -9`;
//! - `return(stop)`: it is stopped, as by `kill -STOP`, until somebody continues it;
//! - `sleep(ms)`, `panic` and the other actions of the crate.
//!
//! The log has the place at which a process dies or stands still, so that a test can count them.

/// The process has come to the place called `name`.
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
            let _alone = GOING.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            signal(rustix::process::Signal::STOP);
            // Each thread runs on until it is told; this one must not get any further.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        Some(_) | None => {}
    });
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

/// Does work in the midst of which no failpoint of another thread stops the process: what it holds meanwhile, such as the
/// lock of a database, nobody else would get. It must not come to such a place itself.
#[inline]
pub fn unstopped<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(feature = "failpoints")]
    let _going = GOING.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    work()
}

/// Shared by all work that must not be stopped.
#[cfg(feature = "failpoints")]
static GOING: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// The number that a test set at the place: `clock::ahead_ms=return(600000)`.
#[cfg(feature = "failpoints")]
pub fn number(name: &str) -> Option<i64> {
    fail::eval(name, |act| act.and_then(|text| text.parse().ok())).flatten()
}

#[cfg(feature = "failpoints")]
fn signal(signal: rustix::process::Signal) {
    // A process may always signal itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
}
