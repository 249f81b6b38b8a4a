//! Compares this machine's clock with those of the stores.

use chrono::TimeDelta;

use super::check::CheckResult;
use super::context::DoctorContext;
use crate::cli::services::{Backend, Services};
use crate::ports::ObjectStore;
use crate::ports::store::Bucket;

/// Skew that may be due to a slow response and to the resolution of HTTP dates.
const SKEW_TOLERATED_S: i64 = 5;
/// Approximate skew above which the store rejects requests whose signature expires with a lease.
const SKEW_S_MAX: i64 = 60;

pub(super) fn skew(context: &DoctorContext) -> Vec<CheckResult> {
    let mut findings = Vec::new();
    if let Ok(Backend::S3(store)) = context.backend() {
        // Every response has a date, including rejections.
        let _ = store.list(Bucket::Pipelines, "", None, None, 1);
        findings.extend(store.clock_skew().map(|ahead| assess("the object store", ahead)));
    }
    if let Ok(kv) = context.kv() {
        let now = || Services::clock().now();
        findings.extend(kv.time().ok().flatten().map(|time| assess("the key-value store", now() - time)));
    }
    if findings.is_empty() {
        findings.push(CheckResult::skipped("no store reported the time of another clock"));
    }
    findings
}

fn assess(whose: &str, ahead: TimeDelta) -> CheckResult {
    let seconds = ahead.num_seconds();
    let far = seconds.abs();
    let found =
        format!("this machine's clock is {far} s {} that of {whose}", if seconds < 0 { "behind" } else { "ahead of" });
    let advice = "synchronize both clocks by NTP";
    match far {
        0..=SKEW_TOLERATED_S => CheckResult::ok(format!("within {SKEW_TOLERATED_S} s of {whose}'s")),
        _ if far <= SKEW_S_MAX => CheckResult::warning(found, advice),
        _ => CheckResult::problem(found, advice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Severity;
    use super::*;

    #[test]
    fn clock_skew_is_judged_in_both_directions() {
        for (seconds, level) in [
            (0, Severity::Ok),
            (-5, Severity::Ok),
            (6, Severity::Warning),
            (-60, Severity::Warning),
            (61, Severity::Problem),
            (-4_000, Severity::Problem),
        ] {
            assert_eq!(assess("x", TimeDelta::seconds(seconds)).level, level, "{seconds}");
        }
        assert_eq!(assess("x", TimeDelta::seconds(-90)).message, "this machine's clock is 90 s behind that of x");
    }
}
