//! The handle of a server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::job::ClaimOrder;
use crate::domain::name::Slug;
use crate::ports::kv::KvResult;
use crate::runtime::Clock;

use super::connection::{Pool, Repeat};
use super::options::{OpenError, RedisOptions};
use super::reply::OperationReply;

/// The key-value ports on one Redis. Any number of processes may use the same server.
pub struct RedisKv {
    pub(super) pool: Pool,
    clock: Option<Arc<dyn Clock>>,
    pub(super) consumer_idle: Duration,
    pub(super) order: Mutex<ClaimOrder>,
}

impl RedisKv {
    /// Doesn't connect yet: [`crate::ports::kv::Diagnose::ping`] checks the server.
    ///
    /// # Errors
    /// [`OpenError`] if the URL or certificates are invalid.
    pub fn open(options: &RedisOptions) -> Result<Self, OpenError> {
        let order = Mutex::default();
        Ok(Self {
            pool: Pool::new(options)?,
            clock: options.clock.clone(),
            consumer_idle: options.consumer_idle,
            order,
        })
    }

    /// The time argument of scripts, in ms; 0 for Redis's own.
    pub(super) fn now(&self) -> i64 {
        self.clock.as_ref().map_or(0, |clock| clock.now().timestamp_millis())
    }

    /// The pipelines that a script found in a sorted set. Removes invalid names from it, which `removed` reports.
    pub(super) fn valid_slugs(&self, found: OperationReply, set: &str, removed: &str) -> KvResult<Vec<Slug>> {
        let mut slugs = Vec::new();
        for reply in found.list()? {
            let name = reply.text()?;
            match Slug::parse(&name) {
                Ok(slug) => slugs.push(slug),
                Err(error) => {
                    tracing::warn!(%error, "{removed}");
                    let mut remove = ::redis::cmd("ZREM");
                    self.pool.request("remove_invalid_name", Repeat::Idempotent, remove.arg(set).arg(&name))?;
                }
            }
        }
        Ok(slugs)
    }
}
