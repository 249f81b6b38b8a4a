//! What of a process's descriptors clients may hold, so that the work behind the server always finds some.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of a connection in work: the client's socket and its copy, and both ends of the way to the handlers.
const PER_CONNECTION: u64 = 4;
/// Clients get at most one of so many parts: two servers may be in one process, beside the work itself.
const SHARE: u64 = 4;
/// As many as a process may ask for; more would only cost it memory.
const WANTED: u64 = 16_384;

/// Raises this process's own limit as far as the system lets it, and says what it is then.
pub(super) fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let current = limit.current.unwrap_or(u64::MAX);
    let wanted = hard.min(WANTED);
    if current >= wanted {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, limit = current, "the limit of open files couldn't be raised");
            current
        }
    }
}

/// How many of `wanted` connections a process of so many descriptors can bear; at least one.
pub(super) fn connections_that_fit(limit: u64, wanted: usize) -> usize {
    let fit = usize::try_from(limit / SHARE / PER_CONNECTION).unwrap_or(usize::MAX).max(1);
    wanted.min(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_leaves_the_work_its_share() {
        for (limit, wanted, fit) in
            [(u64::MAX, 256, 256), (16_384, 256, 256), (1_024, 256, 64), (64, 256, 4), (3, 256, 1)]
        {
            assert_eq!(connections_that_fit(limit, wanted), fit, "{limit}");
        }
    }

    #[test]
    fn the_limit_is_raised_and_never_lowered() {
        let before = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let raised = raise_limit();
        assert!(raised >= before, "{raised} from {before}");
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), raised);
    }
}
