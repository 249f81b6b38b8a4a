//! Retry policy.

use std::time::Duration;

use super::record::WaitReason;
use super::run::{RunError, RunErrorCode};
use crate::domain::limits::{
    BACKOFF_FIRST_MS, BACKOFF_JITTER_PERCENT, BACKOFF_MS_MAX, DEFER_MARGIN_MS, DEFER_MS_MAX, UNSETTLED_WAIT_MS,
};

/// Whether a failed attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptCost {
    One,
    /// Refunded, since the job did not cause the failure.
    Zero,
}

/// The outcome of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDecision {
    Fail,
    Wait { reason: WaitReason, delay: Duration, cost: AttemptCost },
}

/// Decides after the failure of attempt number `attempt` (from 1) of at most `attempts_max`. `jitter` is random in
/// 0.0..1.0.
pub fn after(error: &RunError, attempt: u32, attempts_max: u32, jitter: f64) -> RetryDecision {
    if error.code == RunErrorCode::SourceBeingWritten {
        let delay = Duration::from_millis(UNSETTLED_WAIT_MS);
        return RetryDecision::Wait { reason: WaitReason::SourceBeingWritten, delay, cost: AttemptCost::Zero };
    }
    if !error.code.is_transient() || attempt >= attempts_max {
        return RetryDecision::Fail;
    }
    RetryDecision::Wait { reason: WaitReason::Retry, delay: backoff(attempt, jitter), cost: AttemptCost::One }
}

/// 2 s × 2ⁿ, at most 60 s, ± 20%; n is 0 after the first attempt.
pub fn backoff(attempt: u32, jitter: f64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let ms = (BACKOFF_FIRST_MS << doublings).min(BACKOFF_MS_MAX);
    let spread = ms * BACKOFF_JITTER_PERCENT / 100;
    let offset = (jitter.clamp(0.0, 1.0) * 2.0 * spread as f64) as u64;
    Duration::from_millis((ms - spread + offset).min(BACKOFF_MS_MAX))
}

/// The wait of a job whose pipeline is locked for `lock_left` more: a second longer, at most 30 s.
pub fn defer_delay(lock_left: Duration) -> Duration {
    (lock_left + Duration::from_millis(DEFER_MARGIN_MS)).min(Duration::from_millis(DEFER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: RunErrorCode) -> RunError {
        RunError::new(code, "it failed")
    }

    #[test]
    fn transient_failures_are_tried_again_until_the_attempts_are_used_up() {
        for attempt in [1, 2] {
            let next = after(&error(RunErrorCode::S3Error), attempt, 3, 0.5);
            let RetryDecision::Wait { reason, delay, cost } = next else { panic!("{next:?}") };
            assert_eq!((reason, cost), (WaitReason::Retry, AttemptCost::One));
            assert_eq!(delay, Duration::from_secs(1 << attempt));
        }
        assert_eq!(after(&error(RunErrorCode::S3Error), 3, 3, 0.5), RetryDecision::Fail);
    }

    #[test]
    fn permanent_failures_are_final_at_once() {
        for code in [RunErrorCode::InvalidConfig, RunErrorCode::BucketNotFound, RunErrorCode::AccessDenied] {
            assert_eq!(after(&error(code), 1, 3, 0.5), RetryDecision::Fail);
        }
    }

    #[test]
    fn source_being_written_never_charges_an_attempt() {
        let next = after(&error(RunErrorCode::SourceBeingWritten), 3, 3, 0.5);
        assert!(matches!(
            next,
            RetryDecision::Wait { cost: AttemptCost::Zero, reason: WaitReason::SourceBeingWritten, .. }
        ));
    }

    #[test]
    fn backoff_doubles_spreads_and_is_bounded() {
        let ms = |attempt, jitter| backoff(attempt, jitter).as_millis();
        assert_eq!((ms(1, 0.0), ms(1, 0.5), ms(1, 1.0)), (1_600, 2_000, 2_400));
        assert_eq!(ms(4, 0.5), 16_000);
        for attempt in [6, 40, u32::MAX] {
            assert_eq!((ms(attempt, 0.0), ms(attempt, 1.0)), (48_000, 60_000));
        }
    }

    #[test]
    fn deferred_job_waits_for_the_lock_to_expire() {
        assert_eq!(defer_delay(Duration::from_secs(9)), Duration::from_secs(10));
        assert_eq!(defer_delay(Duration::from_secs(90)), Duration::from_secs(30));
    }
}
