//! In-process locks on keys.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lakemill::ports::kv::{KeyLocks, KvError, KvResult};

/// Implements the contract of locks; can be made to fail, and counts calls.
#[derive(Default)]
pub struct TestLocks {
    held: Mutex<HashMap<String, (String, Instant)>>,
    pub taken: AtomicUsize,
    pub given_back: AtomicUsize,
    pub is_away: std::sync::atomic::AtomicBool,
}

impl KeyLocks for TestLocks {
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool> {
        if self.is_away.load(Ordering::SeqCst) {
            let source = std::io::ErrorKind::ConnectionRefused.into();
            return Err(KvError::Unavailable { operation: "locking", source });
        }
        let mut held = self.held.lock().unwrap();
        let now = Instant::now();
        if held.get(name).is_some_and(|(owner, until)| owner != token && *until > now) {
            return Ok(false);
        }
        held.insert(name.to_owned(), (token.to_owned(), now + ttl));
        self.taken.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }

    fn unlock(&self, name: &str, token: &str) -> KvResult<()> {
        let mut held = self.held.lock().unwrap();
        if held.get(name).is_some_and(|(owner, _)| owner == token) {
            held.remove(name);
            self.given_back.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
