//! Redis as a backend of the suite: each test has its own server.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use lakemill::adapters::redis::{RedisKv, RedisOptions, keys};
use lakemill::ports::Kv;
use lakemill::runtime::Clock;

use super::{Backend, Fixture};
use crate::support::moved_clock::MovedClock;
use crate::support::redis_server::RedisServer;

/// Advances by `ARGV[1]` ms the times that Redis itself keeps: TTLs, and idle times of pending entries.
const ADVANCE: &str = r"
local by = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= by then redis.call('DEL', key) elseif left > by then redis.call('PEXPIRE', key, left - by) end
end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[2], '-', '+', 100000)
if pending.err then return end
for _, entry in ipairs(pending) do
  -- Claiming what was deleted would acknowledge it.
  if #redis.call('XRANGE', KEYS[1], entry[1], entry[1]) == 1 then
    redis.call('XCLAIM', KEYS[1], ARGV[2], entry[2], 0, entry[1], 'IDLE', entry[3] + by, 'JUSTID')
  end
end";

/// The command of the docs that makes a user with the permissions that are needed.
static USER: LazyLock<&str> = LazyLock::new(|| {
    let mut lines = include_str!("../../../docs/fleet.md").lines().map(str::trim);
    lines.find(|line| line.starts_with("ACL SETUSER ")).unwrap()
});

struct Redis {
    server: RedisServer,
    clock: Arc<MovedClock>,
}

/// A fixture on a fresh server.
pub fn fixture() -> Fixture {
    Fixture::new(Redis { server: RedisServer::start(), clock: Arc::default() })
}

impl Backend for Redis {
    /// As the user of the docs, so that the whole contract is held with its permissions.
    fn open(&self) -> Arc<dyn Kv> {
        let user: Vec<&str> = USER.split(' ').collect();
        self.server.ask::<()>(&user);
        let clock: Arc<dyn Clock> = self.clock.clone();
        let url = self.server.url().replacen("redis://", "redis://lakemill:PASSWORD@", 1);
        let options = RedisOptions { clock: Some(clock), ..RedisOptions::new(url) };
        Arc::new(RedisKv::open(&options).unwrap())
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
        let mut connection = self.server.connect().unwrap();
        let mut eval = redis::cmd("EVAL");
        eval.arg(ADVANCE).arg(1).arg(keys::STREAM).arg(by.as_millis().to_string()).arg(keys::GROUP);
        eval.exec(&mut connection).unwrap();
    }

    fn stop(&self) {
        self.clock.stop();
    }

    fn now(&self) -> DateTime<Utc> {
        // As stored: whole milliseconds.
        DateTime::from_timestamp_millis(self.clock.now().timestamp_millis()).unwrap()
    }

    fn add_raw(&self, fields: &[(&[u8], &[u8])]) {
        let mut command = redis::cmd("XADD");
        command.arg(keys::STREAM).arg("*");
        for (name, value) in fields {
            command.arg(*name).arg(*value);
        }
        command.exec(&mut self.server.connect().unwrap()).unwrap();
    }

    fn trim_stream(&self) {
        self.server.ask::<()>(&["XTRIM", keys::STREAM, "MAXLEN", "0"]);
    }

    fn dead(&self) -> Vec<String> {
        let mut kept: Vec<String> = self.server.ask(&["LRANGE", keys::DEAD, "0", "-1"]);
        kept.reverse();
        kept
    }

    fn extend_without_keys(&self, pipeline: &str) {
        let now = self.now().timestamp_millis();
        self.server.ask::<()>(&["HSETNX", keys::FIRST_EVENTS, pipeline, &now.to_string()]);
        self.server.ask::<()>(&["ZADD", keys::WINDOWS, &(now + 5_000).to_string(), pipeline]);
    }

    fn change_sets(&self) -> usize {
        let stored = |prefix: &str| self.server.ask::<Vec<String>>(&["KEYS", &format!("{prefix}*")]).len();
        stored(keys::WINDOW_CHANGES) + stored(keys::JOB_CHANGES)
    }

    fn lose_data(&self) {
        self.server.ask::<()>(&["FLUSHALL"]);
    }
}
