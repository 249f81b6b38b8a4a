//! Who is logged in, and who tries too often.

use std::time::Duration;

use super::RedisKv;
use super::keys;
use super::reply::Reply;
use super::scripts::{self, Call};
use crate::domain::limits::{LOGIN_FAILURES_FREE, LOGIN_MEMORY_S, LOGIN_WAIT_S, LOGIN_WAIT_S_MAX};
use crate::ports::kv::KvResult;
use crate::ports::sessions::{Admission, LoginThrottle, Session, Sessions};

impl Sessions for RedisKv {
    fn open(&self, token_sha256: &str, idle: Duration, max: Duration) -> KvResult<Session> {
        let call = Call::new(&scripts::SESSION_OPEN, [&keys::session(token_sha256)]);
        session(call.arg(self.now()).ms(idle).ms(max).run(&self.pool)?)
    }

    fn touch(&self, token_sha256: &str, idle: Duration) -> KvResult<Option<Session>> {
        let call = Call::new(&scripts::SESSION_TOUCH, [&keys::session(token_sha256)]);
        let reply = call.arg(self.now()).ms(idle).run(&self.pool)?;
        if reply.is_nil() { Ok(None) } else { session(reply).map(Some) }
    }

    fn close(&self, token_sha256: &str) -> KvResult<()> {
        self.delete("session_close", &keys::session(token_sha256))
    }
}

impl LoginThrottle for RedisKv {
    fn admit(&self, address: &str) -> KvResult<Admission> {
        let reply = Call::new(&scripts::LOGIN_ADMIT, [&keys::login(address)])
            .arg(self.now())
            .arg(LOGIN_FAILURES_FREE)
            .arg(LOGIN_WAIT_S)
            .arg(LOGIN_WAIT_S_MAX)
            .arg(LOGIN_MEMORY_S)
            .run(&self.pool)?;
        match reply.count()? {
            0 => Ok(Admission::Try),
            ms => Ok(Admission::Wait(Duration::from_millis(ms))),
        }
    }

    fn succeeded(&self, address: &str) -> KvResult<()> {
        self.delete("login_succeeded", &keys::login(address))
    }
}

fn session(reply: Reply) -> KvResult<Session> {
    let [created, ends] = reply.parts()?;
    Ok(Session { created_at: created.time()?, ends_at: ends.time()? })
}
