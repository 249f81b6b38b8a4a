//! Counters of queries and logins, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::http::{ApiError, ErrorCode};
use crate::observability::{Histogram, MetricKind, MetricsText};

/// Upper bounds of the buckets of query durations, in seconds.
const QUERY_BOUNDS_S: [f64; 9] = [0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0];

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Ok,
    /// The statement can't be run as it is.
    Invalid,
    Timeout,
    OutOfMemory,
    TooLarge,
    Cancelled,
    /// No permit was available.
    Overloaded,
    /// The service or a store failed.
    Failed,
}

impl Ended {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Ok, "ok"),
        (Self::Invalid, "invalid"),
        (Self::Timeout, "timeout"),
        (Self::OutOfMemory, "out_of_memory"),
        (Self::TooLarge, "too_large"),
        (Self::Cancelled, "cancelled"),
        (Self::Overloaded, "overloaded"),
        (Self::Failed, "failed"),
    ];

    fn of(error: &ApiError) -> Self {
        match error.code() {
            ErrorCode::QueryTimeout => Self::Timeout,
            ErrorCode::QueryOutOfMemory => Self::OutOfMemory,
            ErrorCode::QueryTooLarge => Self::TooLarge,
            ErrorCode::QueryCancelled => Self::Cancelled,
            ErrorCode::Overloaded => Self::Overloaded,
            _ if error.status() < 500 => Self::Invalid,
            _ => Self::Failed,
        }
    }
}

/// How a login ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    Ok,
    /// The password was wrong.
    Failed,
    /// Rejected after too many failed logins.
    Throttled,
}

impl LoginOutcome {
    const ALL: [(Self, &'static str); 3] = [(Self::Ok, "ok"), (Self::Failed, "failed"), (Self::Throttled, "throttled")];
}

/// Counters since the start.
#[derive(Debug)]
pub struct Counts {
    queries: [AtomicU64; Ended::ALL.len()],
    query_durations: Histogram<{ QUERY_BOUNDS_S.len() }>,
    logins: [AtomicU64; LoginOutcome::ALL.len()],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            queries: Default::default(),
            query_durations: Histogram::new(&QUERY_BOUNDS_S),
            logins: Default::default(),
        }
    }
}

impl Counts {
    /// Counts the outcome of a statement.
    pub fn statement<T>(&self, outcome: &Result<T, ApiError>) {
        let ended = outcome.as_ref().map_or_else(Ended::of, |_| Ended::Ok);
        self.queries[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request for the results of statements.
    pub fn queried(&self, took: Duration) {
        self.query_durations.observe(took);
    }

    pub fn login(&self, outcome: LoginOutcome) {
        self.logins[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn write(&self, prefix: &str, text: &mut MetricsText) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        text.family(MetricKind::Counter, &format!("{prefix}queries_total"), "Statements, by outcome.");
        for (ended, label) in Ended::ALL {
            text.sample(&[("outcome", label)], read(&self.queries[ended as usize]));
        }
        let help = "Duration of requests for query results; all queries of a dashboard are one request.";
        text.family(MetricKind::Histogram, &format!("{prefix}query_duration_seconds"), help);
        self.query_durations.write(&[], text);
        text.family(MetricKind::Counter, &format!("{prefix}logins_total"), "Login attempts, by outcome.");
        for (login, label) in LoginOutcome::ALL {
            text.sample(&[("outcome", label)], read(&self.logins[login as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_labels_match_their_index() {
        assert!(Ended::ALL.iter().enumerate().all(|(at, (ended, _))| *ended as usize == at));
        assert!(LoginOutcome::ALL.iter().enumerate().all(|(at, (login, _))| *login as usize == at));
        let counts = Counts::default();
        counts.statement(&Ok(()));
        for code in [ErrorCode::InvalidSql, ErrorCode::QueryTimeout, ErrorCode::S3Error, ErrorCode::Internal] {
            counts.statement::<()>(&Err(ApiError::of(code)));
        }
        counts.login(LoginOutcome::Throttled);
        counts.queried(Duration::from_millis(200));
        let mut text = MetricsText::new();
        counts.write("x_", &mut text);
        let text = text.finish();
        for line in [
            "x_queries_total{outcome=\"ok\"} 1\n",
            "x_queries_total{outcome=\"invalid\"} 1\n",
            "x_queries_total{outcome=\"timeout\"} 1\n",
            "x_queries_total{outcome=\"failed\"} 2\n",
            "x_query_duration_seconds_bucket{le=\"0.25\"} 1\n",
            "x_logins_total{outcome=\"throttled\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
