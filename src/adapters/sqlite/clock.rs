//! The store's time.
//!
//! Follows the wall clock, but never goes back: when the wall clock is set back, the store's time continues with the time
//! since boot, and after a reboot from the last stored value. So nothing that expired is valid again, and nothing lasts
//! longer than its TTL.

use rusqlite::Connection;

use crate::runtime::Clock;

use super::error::StepResult;

/// How far the stored value may lag behind, in ms.
const SLACK_MS: i64 = 1_000;

/// The store's time in ms; with `keep`, updates the stored value.
pub(super) fn now(conn: &Connection, clock: &dyn Clock, keep: bool) -> StepResult<i64> {
    let wall = clock.now().timestamp_millis();
    let boot = i64::try_from(clock.since_boot().as_millis()).unwrap_or(i64::MAX / 2);
    let (offset, high): (i64, i64) = conn
        .prepare_cached("SELECT offset_ms, high_ms FROM clock")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let continued = boot.saturating_add(offset);
    let now = wall.max(continued).max(high);
    if keep && (now - high >= SLACK_MS || now - continued >= SLACK_MS) {
        conn.prepare_cached("UPDATE clock SET offset_ms = ?1, high_ms = ?2")?.execute([now - boot, now])?;
    }
    Ok(now)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use chrono::{DateTime, Utc};

    use super::*;

    #[derive(Default)]
    struct TestClock {
        wall: AtomicI64,
        boot: AtomicI64,
    }

    impl Clock for TestClock {
        fn now(&self) -> DateTime<Utc> {
            DateTime::from_timestamp_millis(self.wall.load(Ordering::SeqCst)).unwrap()
        }

        fn since_boot(&self) -> Duration {
            Duration::from_millis(self.boot.load(Ordering::SeqCst) as u64)
        }
    }

    /// Each step: wall and time since boot, and the store's time.
    fn check(steps: &[(i64, i64, i64)]) {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(super::super::schema::MIGRATIONS[0]).unwrap();
        let clock = TestClock::default();
        for (n, (wall, boot, expected)) in steps.iter().enumerate() {
            clock.wall.store(*wall, Ordering::SeqCst);
            clock.boot.store(*boot, Ordering::SeqCst);
            assert_eq!(now(&conn, &clock, true).unwrap(), *expected, "step {n}");
        }
    }

    #[test]
    fn follows_the_wall_clock_forward() {
        check(&[(50_000, 7_000, 50_000), (50_500, 7_500, 50_500), (99_000, 8_000, 99_000), (100_000, 9_000, 100_000)]);
    }

    #[test]
    fn continues_when_the_wall_clock_is_set_back() {
        check(&[(50_000, 7_000, 50_000), (10_000, 8_000, 51_000), (14_000, 12_000, 55_000), (60_000, 13_000, 60_000)]);
    }

    #[test]
    fn continues_from_the_stored_time_after_a_reboot_with_a_wrong_clock() {
        check(&[(50_000, 7_000, 50_000), (0, 1_000, 50_000), (2_000, 3_000, 52_000), (90_000, 4_000, 90_000)]);
    }
}
