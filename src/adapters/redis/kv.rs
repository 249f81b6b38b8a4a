//! The handle of a server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::job::ClaimOrder;
use crate::runtime::Clock;

use super::connection::Pool;
use super::options::{OpenError, RedisOptions};

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
}
