//! How long a signature is valid.
//!
//! Invariant: the store rejects a leased request that arrives after the lease has expired, by the store's own clock; with
//! less than a second left nothing is sent.
//!
//! A signature in the query is valid from `X-Amz-Date` for `X-Amz-Expires`, both in whole seconds, by the store's clock.
//! Requests are therefore dated by our estimate of that clock, so that an error of this machine's clock is harmless, and
//! expire with the rest of the lease, less a margin.
//!
//! A signature in headers has no expiry, but stores reject dates that differ by more than [`DATE_WINDOW`] from their time.
//! Where such a request must expire, it is dated that much before its expiry.

use std::io;
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use crate::ports::store::Lease;

use super::failure::RequestError;
use super::request::S3Request;

/// Validity of a request without a lease.
const UNLEASED: Duration = Duration::from_secs(15 * 60);
/// Last part of a lease in which no write may start, so that started writes end within the lease. At most the lease
/// divided by [`MARGIN_DIVISOR`], so that short leases are usable.
const MARGIN: Duration = Duration::from_secs(10);
const MARGIN_DIVISOR: u32 = 3;
/// The difference between a request's date and the store's time from which on S3 rejects the request.
pub(super) const DATE_WINDOW: TimeDelta = TimeDelta::minutes(15);
/// S3's limit of `X-Amz-Expires`.
const SECONDS_MAX: u32 = 7 * 24 * 3600;

/// Start, by the store's clock, and length of a signature's validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: DateTime<Utc>,
    pub(super) seconds: u32,
}

impl Validity {
    pub(super) fn length(self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// The date of a request that is signed in headers, which the store rejects once this has ended. Not after the start.
    pub(super) fn expiring_date(self) -> DateTime<Utc> {
        let start = self.from.trunc_subsecs(0);
        (start + TimeDelta::seconds(self.seconds.into()) - DATE_WINDOW).min(start)
    }
}

/// The validity of a request that is signed at `from`, in the store's time.
pub(super) fn of(request: &S3Request<'_>, from: DateTime<Utc>) -> Result<Validity, RequestError> {
    let leased = request.lease.map(left_of).transpose()?;
    let timed = request.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let left = match (leased, timed) {
        (Some(lease), Some(timed)) => lease.min(timed),
        (Some(left), None) | (None, Some(left)) => left,
        (None, None) => UNLEASED,
    };
    match whole_seconds(left, from) {
        seconds if seconds >= 1 => Ok(Validity { from, seconds }),
        _ if leased.is_some() => Err(RequestError::LeaseLost),
        _ => Err(RequestError::unsent(io::Error::new(io::ErrorKind::TimedOut, "the deadline of the write has passed"))),
    }
}

fn left_of(lease: &dyn Lease) -> Result<Duration, RequestError> {
    let remaining = lease.remaining().map_err(|_| RequestError::LeaseLost)?;
    Ok(remaining - MARGIN.min(remaining / MARGIN_DIVISOR))
}

/// The signature's date has whole seconds: the milliseconds of `from` are added.
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

    struct LeaseWithTimeLeft(Slug, Option<u64>);

    impl Lease for LeaseWithTimeLeft {
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
        let lease = LeaseWithTimeLeft(Slug::parse("s").unwrap(), left_ms);
        let request = S3Request::new(Method::PUT, Bucket::Lake, "k", "writing").leased(Some(&lease));
        match of(&request, DateTime::from_timestamp_millis(NOW_MS + millis).unwrap()) {
            Ok(validity) => Some(validity.seconds),
            Err(failure) => {
                assert!(matches!(failure, RequestError::LeaseLost));
                None
            }
        }
    }

    #[test]
    fn write_expires_a_margin_before_its_lease() {
        assert_eq!(signed(Some(90_000), 0), Some(80));
        assert_eq!(signed(Some(90_999), 0), Some(80));
        assert_eq!(signed(Some(90_500), 499), Some(80));
        assert_eq!(signed(Some(90_500), 500), Some(81), "the date drops half a second");
    }

    #[test]
    fn rounding_never_extends_a_signature_past_its_lease() {
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
    fn expired_or_almost_expired_lease_sends_nothing() {
        assert_eq!(signed(None, 0), None);
        assert_eq!(signed(Some(1_400), 0), None);
        assert_eq!(signed(Some(0), 999), None);
    }

    #[test]
    fn date_of_signed_headers_is_the_expiry_less_the_window() {
        let from = DateTime::from_timestamp_millis(NOW_MS + 999).unwrap();
        for (seconds, expected_s) in [(1, -899), (80, -820), (900, 0), (3_600, 0)] {
            let date = Validity { from, seconds }.expiring_date();
            assert_eq!(date.timestamp_millis(), NOW_MS + expected_s * 1_000, "{seconds}");
        }
    }

    #[test]
    fn unleased_request_has_default_validity() {
        let request = S3Request::new(Method::GET, Bucket::Lake, "k", "reading");
        let from = DateTime::from_timestamp_millis(NOW_MS).unwrap();
        assert_eq!(of(&request, from).unwrap(), Validity { from, seconds: 900 });
    }
}
