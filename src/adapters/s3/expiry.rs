//! Until when a signature holds.
//!
//! Invariant: with a lease, the store refuses to start the request once the lease is over, by the store's own clock;
//! with less than a second left nothing is sent.
//!
//! A signature holds from `X-Amz-Date`, whole seconds, for `X-Amz-Expires` whole seconds, judged by the store's clock.
//! So a request is dated by that clock, as far as we know it, and a clock of ours that is far off, or is set, does no
//! harm: what is signed ends with what is left of the lease, less a margin.

use std::io;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::ports::store::Lease;

use super::answer::Failure;
use super::client::Call;

/// How long a request without a lease may take to reach the store.
const UNLEASED: Duration = Duration::from_secs(15 * 60);
/// The last part of a lease in which no write may start, so that one that has started ends within it. Never more than
/// [`MARGIN_DIVISOR`] lets it be, so that short leases can be written under.
const MARGIN: Duration = Duration::from_secs(10);
const MARGIN_DIVISOR: u32 = 3;
/// The most that signatures can hold.
const SECONDS_MAX: u32 = 7 * 24 * 3600;

/// From when on, by the store's clock, and for how long a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: DateTime<Utc>,
    pub(super) seconds: u32,
}

impl Validity {
    pub(super) fn length(self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

/// The validity of a request that is signed at `from`, the store's time.
pub(super) fn of(call: &Call<'_>, from: DateTime<Utc>) -> Result<Validity, Failure> {
    let leased = call.lease.map(left_of).transpose()?;
    let until = call.until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = match (leased, until) {
        (Some(lease), Some(until)) => lease.min(until),
        (Some(left), None) | (None, Some(left)) => left,
        (None, None) => UNLEASED,
    };
    match whole_seconds(left, from) {
        seconds if seconds >= 1 => Ok(Validity { from, seconds }),
        _ if leased.is_some() => Err(Failure::LeaseLost),
        _ => Err(Failure::unsent(io::Error::new(io::ErrorKind::TimedOut, "the time for the write ran out"))),
    }
}

fn left_of(lease: &dyn Lease) -> Result<Duration, Failure> {
    let remaining = lease.remaining().map_err(|_| Failure::LeaseLost)?;
    Ok(remaining - MARGIN.min(remaining / MARGIN_DIVISOR))
}

/// The date in the signature has no parts of a second, so those of `from` come on top.
fn whole_seconds(left: Duration, from: DateTime<Utc>) -> u32 {
    let left_ms = left.as_millis() + u128::from(from.timestamp_subsec_millis());
    u32::try_from(left_ms / 1_000).unwrap_or(u32::MAX).min(SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::Slug;
    use crate::ports::store::{Bucket, LeaseLost};
    use ureq::http::Method;

    struct Left(Slug, Option<u64>);

    impl Lease for Left {
        fn slug(&self) -> &Slug {
            &self.0
        }
        fn fence(&self) -> u64 {
            1
        }
        fn remaining(&self) -> Result<Duration, LeaseLost> {
            self.1.map(Duration::from_millis).ok_or(LeaseLost)
        }
    }

    const NOW_MS: i64 = 1_763_724_000_000;

    /// The seconds signed for with `left_ms` of a lease, `millis` past the second; `None` if lost.
    fn signed(left_ms: Option<u64>, millis: i64) -> Option<u32> {
        let lease = Left(Slug::parse("s").unwrap(), left_ms);
        let call = Call::new(Method::PUT, Bucket::Lake, "k", "writing").leased(Some(&lease));
        match of(&call, DateTime::from_timestamp_millis(NOW_MS + millis).unwrap()) {
            Ok(validity) => Some(validity.seconds),
            Err(failure) => {
                assert!(matches!(failure, Failure::LeaseLost));
                None
            }
        }
    }

    #[test]
    fn a_write_expires_before_its_lease_by_the_margin() {
        assert_eq!(signed(Some(90_000), 0), Some(80));
        assert_eq!(signed(Some(90_999), 0), Some(80));
        assert_eq!(signed(Some(90_500), 499), Some(80));
        assert_eq!(signed(Some(90_500), 500), Some(81), "the date leaves half a second off");
    }

    #[test]
    fn no_rounding_lets_a_signature_outlive_its_lease() {
        for left_ms in (1_600..40_000).step_by(1_234) {
            for millis in [0, 1, 123, 500, 999] {
                let end_ms = i64::from(signed(Some(left_ms), millis).unwrap()) * 1_000;
                let margin_ms = (left_ms as i64 / 3).min(10_000);
                let unused_ms = millis + left_ms as i64 - margin_ms - end_ms;
                assert!((0..=1_001).contains(&unused_ms), "{left_ms} {millis}: {unused_ms}");
            }
        }
    }

    #[test]
    fn short_leases_have_short_margins() {
        assert_eq!(signed(Some(3_000), 0), Some(2));
        assert_eq!(signed(Some(1_500), 0), Some(1));
        assert_eq!(signed(Some(30_000), 0), Some(20));
    }

    #[test]
    fn what_is_lost_or_as_good_as_lost_is_not_sent() {
        assert_eq!(signed(None, 0), None);
        assert_eq!(signed(Some(1_400), 0), None);
        assert_eq!(signed(Some(0), 999), None);
    }

    #[test]
    fn without_a_lease_there_is_time() {
        let call = Call::new(Method::GET, Bucket::Lake, "k", "reading");
        let from = DateTime::from_timestamp_millis(NOW_MS).unwrap();
        assert_eq!(of(&call, from).unwrap(), Validity { from, seconds: 900 });
    }
}
