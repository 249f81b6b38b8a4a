//! The store's time.
//!
//! It is the wall clock's, but it never falls: where the wall clock is set back, the store's time goes on by the time
//! since boot, and after a reboot from the latest that was told. So nothing that had expired comes back, and nothing
//! lasts longer than it was to.

use rusqlite::Connection;

use crate::runtime::Clock;

use super::error::Outcome;

/// How far the store's time may fall behind what was last written of it, in ms.
const SLACK_MS: i64 = 1_000;

/// The store's time in ms. With `keep`, what must be known of it later is written.
pub(super) fn now(conn: &Connection, clock: &dyn Clock, keep: bool) -> Outcome<i64> {
    let wall = clock.now().timestamp_millis();
    let boot = i64::try_from(clock.since_boot().as_millis()).unwrap_or(i64::MAX / 2);
    let (offset, high): (i64, i64) = conn
        .prepare_cached("SELECT offset_ms, high_ms FROM clock")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let lived = boot.saturating_add(offset);
    let now = wall.max(lived).max(high);
    if keep && (now - high >= SLACK_MS || now - lived >= SLACK_MS) {
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
    struct Hands {
        wall: AtomicI64,
        boot: AtomicI64,
    }

    impl Clock for Hands {
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
        let hands = Hands::default();
        for (n, (wall, boot, expected)) in steps.iter().enumerate() {
            hands.wall.store(*wall, Ordering::SeqCst);
            hands.boot.store(*boot, Ordering::SeqCst);
            assert_eq!(now(&conn, &hands, true).unwrap(), *expected, "step {n}");
        }
    }

    #[test]
    fn it_follows_the_wall_clock_forward() {
        check(&[(50_000, 7_000, 50_000), (50_500, 7_500, 50_500), (99_000, 8_000, 99_000), (100_000, 9_000, 100_000)]);
    }

    #[test]
    fn it_goes_on_by_itself_when_the_wall_clock_is_set_back() {
        check(&[(50_000, 7_000, 50_000), (10_000, 8_000, 51_000), (14_000, 12_000, 55_000), (60_000, 13_000, 60_000)]);
    }

    #[test]
    fn it_stands_where_it_was_after_a_reboot_with_a_wrong_clock_and_goes_on_from_there() {
        check(&[(50_000, 7_000, 50_000), (0, 1_000, 50_000), (2_000, 3_000, 52_000), (90_000, 4_000, 90_000)]);
    }
}
