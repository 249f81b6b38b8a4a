//! Limits how many of the process's descriptors clients may use, so that enough remain for the service's own work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of the process for each connection: its socket, and the files and sockets that its handler opens, with
/// room for a second server and for the work itself.
const PER_CONNECTION: u64 = 16;
/// The requested limit; a higher one would only cost memory.
const WANTED: u64 = 16_384;

/// Raises this process's limit as far as the system allows, and returns it.
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
            tracing::warn!(%error, limit = current, "raising the limit of open files failed");
            current
        }
    }
}

/// How many of `wanted` connections fit into a limit of descriptors; at least one.
pub(super) fn connections_that_fit(limit: u64, wanted: usize) -> usize {
    let fit = usize::try_from(limit / PER_CONNECTION).unwrap_or(usize::MAX).max(1);
    wanted.min(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_other_files() {
        for (limit, wanted, fit) in
            [(u64::MAX, 256, 256), (16_384, 256, 256), (1_024, 256, 64), (64, 256, 4), (3, 256, 1)]
        {
            assert_eq!(connections_that_fit(limit, wanted), fit, "{limit}");
        }
    }

    #[test]
    fn limit_is_raised_and_never_lowered() {
        let before = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let raised = raise_limit();
        assert!(raised >= before, "{raised} from {before}");
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), raised);
    }
}
