//! Until when a signature holds.
//!
//! Invariant: with a lease, the store refuses to start the request once the lease is over, by the store's own clock;
//! with less than a second left nothing is sent.
//!
//! A signature holds from `X-Amz-Date`, which is our time in whole seconds, for `X-Amz-Expires` whole seconds, judged
//! by the store's clock. Hence what is left of the lease, less a margin, plus the part of a second that the date leaves
//! off, less how far our clock runs ahead of the store's (more, if it runs behind), is rounded down.

use std::io;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

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
const SECONDS_MAX: i64 = 7 * 24 * 3600;

/// For how long a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expiry(u32);

impl Expiry {
    pub(super) fn seconds(self) -> u32 {
        self.0
    }

    pub(super) fn signed_for(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

/// The expiry of a request that is signed `now`; `ahead` is how far our clock is ahead of the store's.
pub(super) fn of(call: &Call<'_>, now: DateTime<Utc>, ahead: Option<TimeDelta>) -> Result<Expiry, Failure> {
    let leased = call.lease.map(left_of).transpose()?;
    let until = call.until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = match (leased, until) {
        (Some(lease), Some(until)) => lease.min(until),
        (Some(left), None) | (None, Some(left)) => left,
        (None, None) => UNLEASED,
    };
    let seconds = whole_seconds(left, now, ahead);
    match u32::try_from(seconds.min(SECONDS_MAX)) {
        Ok(seconds) if seconds >= 1 => Ok(Expiry(seconds)),
        _ if leased.is_some() => Err(Failure::LeaseLost),
        _ if until.is_none() => Ok(Expiry(1)),
        _ => Err(Failure::unsent(io::Error::new(io::ErrorKind::TimedOut, "the lock on the key ran out"))),
    }
}

fn left_of(lease: &dyn Lease) -> Result<Duration, Failure> {
    let remaining = lease.remaining().map_err(|_| Failure::LeaseLost)?;
    Ok(remaining - MARGIN.min(remaining / MARGIN_DIVISOR))
}

fn whole_seconds(left: Duration, now: DateTime<Utc>, ahead: Option<TimeDelta>) -> i64 {
    let left_ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    let left_off_ms = i64::from(now.timestamp_subsec_millis());
    let ahead_ms = ahead.map_or(0, |ahead| ahead.num_milliseconds());
    left_ms.saturating_add(left_off_ms).saturating_sub(ahead_ms).div_euclid(1_000)
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

    /// Seconds signed for with `left_ms` of a lease, `millis` past the second, `ahead_ms`; `None` if lost.
    fn signed(left_ms: Option<u64>, millis: i64, ahead_ms: Option<i64>) -> Option<u32> {
        let lease = Left(Slug::parse("s").unwrap(), left_ms);
        let call = Call::new(Method::PUT, Bucket::Lake, "k", "writing").leased(Some(&lease));
        let now = DateTime::from_timestamp_millis(1_763_724_000_000 + millis).unwrap();
        match of(&call, now, ahead_ms.map(TimeDelta::milliseconds)) {
            Ok(expiry) => Some(expiry.seconds()),
            Err(failure) => {
                assert!(matches!(failure, Failure::LeaseLost));
                None
            }
        }
    }

    #[test]
    fn a_write_expires_before_its_lease_by_the_margin_and_the_skew() {
        assert_eq!(signed(Some(90_000), 0, None), Some(80));
        assert_eq!(signed(Some(90_000), 0, Some(5_000)), Some(75));
        assert_eq!(signed(Some(90_000), 0, Some(1)), Some(79));
        assert_eq!(signed(Some(90_000), 0, Some(-60_000)), Some(140));
        assert_eq!(signed(Some(90_500), 400, Some(0)), Some(80));
        assert_eq!(signed(Some(90_500), 500, Some(0)), Some(81));
    }

    #[test]
    fn short_leases_have_short_margins() {
        assert_eq!(signed(Some(3_000), 0, None), Some(2));
        assert_eq!(signed(Some(1_500), 0, None), Some(1));
        assert_eq!(signed(Some(30_000), 0, None), Some(20));
    }

    #[test]
    fn what_is_lost_or_as_good_as_lost_is_not_sent() {
        assert_eq!(signed(None, 0, None), None);
        assert_eq!(signed(Some(1_400), 0, None), None);
        assert_eq!(signed(Some(0), 999, None), None);
        assert_eq!(signed(Some(60_000), 0, Some(49_001)), None);
    }

    #[test]
    fn without_a_lease_there_is_time() {
        let call = Call::new(Method::GET, Bucket::Lake, "k", "reading");
        let now = DateTime::from_timestamp(1_763_724_000, 0).unwrap();
        let seconds = |ahead: i64| of(&call, now, Some(TimeDelta::seconds(ahead))).unwrap().seconds();
        assert_eq!((seconds(0), seconds(10_000), seconds(-10_000_000)), (900, 1, 604_800));
    }
}
