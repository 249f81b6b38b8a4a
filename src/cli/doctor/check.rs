//! Runs a check in isolation, and collects its findings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::context::DoctorContext;

/// Longest time of a check. Checks run concurrently.
const CHECK_TIME_MAX: Duration = Duration::from_secs(40);

/// An entry of the table of checks.
pub(super) struct CheckSpec {
    pub(super) name: &'static str,
    /// Returns at least one finding.
    pub(super) run: fn(&DoctorContext) -> Vec<CheckResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Ok,
    /// Not checked: impossible or unnecessary.
    Skipped,
    /// It works, but poorly or unsafely.
    Warning,
    /// It doesn't work.
    Problem,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// A finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckResult {
    pub(super) level: Severity,
    pub(super) message: String,
    /// The advice.
    pub(super) advice: Option<String>,
}

impl CheckResult {
    pub(super) fn ok(message: impl Into<String>) -> Self {
        Self { level: Severity::Ok, message: message.into(), advice: None }
    }

    pub(super) fn skipped(message: impl Into<String>) -> Self {
        Self { level: Severity::Skipped, message: message.into(), advice: None }
    }

    pub(super) fn warning(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Severity::Warning, message: message.into(), advice: Some(advice.into()) }
    }

    pub(super) fn problem(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Severity::Problem, message: message.into(), advice: Some(advice.into()) }
    }
}

/// A check that runs on its own thread.
pub(super) struct RunningCheck {
    name: &'static str,
    findings: Receiver<Vec<CheckResult>>,
    deadline: Instant,
}

impl RunningCheck {
    pub(super) fn start(check: &'static CheckSpec, context: &Arc<DoctorContext>) -> Self {
        Self::start_within(check, context, CHECK_TIME_MAX)
    }

    fn start_within(check: &'static CheckSpec, context: &Arc<DoctorContext>, time: Duration) -> Self {
        let (give, findings) = crossbeam_channel::bounded(1);
        let context = Arc::clone(context);
        let body = move || drop(give.send((check.run)(&context)));
        // Without a thread the channel is disconnected, which is reported.
        drop(std::thread::Builder::new().name(check.name.into()).spawn(body));
        Self { name: check.name, findings, deadline: Instant::now() + time }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Waits for the findings. A hanging thread is left behind.
    pub(super) fn findings(self) -> Vec<CheckResult> {
        let report = "report this as a bug in Lakemill";
        match self.findings.recv_deadline(self.deadline) {
            Ok(findings) if !findings.is_empty() => findings,
            Ok(_) => vec![CheckResult::problem("the check returned no result", report)],
            Err(RecvTimeoutError::Timeout) => {
                vec![CheckResult::problem(
                    "timed out",
                    "check that the dependency can be reached and is not overloaded",
                )]
            }
            Err(RecvTimeoutError::Disconnected) => vec![CheckResult::problem("the check failed", report)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static GOOD: CheckSpec = CheckSpec { name: "good", run: |_| vec![CheckResult::ok("fine")] };
    static PANICS: CheckSpec = CheckSpec { name: "panics", run: |_| panic!("a check that panics on purpose") };
    static EMPTY: CheckSpec = CheckSpec { name: "empty", run: |_| Vec::new() };
    static HANGS: CheckSpec = CheckSpec {
        name: "hangs",
        run: |_| loop {
            std::thread::park();
        },
    };

    #[test]
    fn failing_or_hanging_check_is_a_problem_and_affects_no_other() {
        let nothing = Arc::new(DoctorContext::of(&crate::config::Environment {
            get: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        }));
        let start = |check, ms| RunningCheck::start_within(check, &nothing, Duration::from_millis(ms));
        let running =
            [start(&HANGS, 50), start(&PANICS, 60_000), start(&EMPTY, 60_000), start(&GOOD, 60_000)].into_iter();
        let found: Vec<(Severity, String)> =
            running.flat_map(RunningCheck::findings).map(|finding| (finding.level, finding.message)).collect();
        let expected = [
            (Severity::Problem, "timed out"),
            (Severity::Problem, "the check failed"),
            (Severity::Problem, "the check returned no result"),
            (Severity::Ok, "fine"),
        ];
        assert_eq!(found, expected.map(|(level, message)| (level, message.to_owned())));
    }
}
