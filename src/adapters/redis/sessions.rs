//! Sessions and login throttling.

use std::time::Duration;

use super::keys;
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::domain::login::{KNOWN_LOGIN_S, LOGIN_MEMORY_S, LoginScope, LoginScopes};
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
    fn admit(&self, client: &LoginScopes) -> KvResult<Admission> {
        let rules = client.iter().flat_map(|LoginScope { rule, .. }| {
            [rule.free.to_string(), rule.wait_s.to_string(), rule.wait_s_max.to_string()]
        });
        let call = Call::with_keys(&scripts::LOGIN_ADMIT, login_keys(client));
        let reply = call.arg(self.now()).arg(LOGIN_MEMORY_S).args(rules).run(&self.pool)?;
        match reply.count()? {
            0 => Ok(Admission::Allowed),
            ms => Ok(Admission::Wait(Duration::from_millis(ms))),
        }
    }

    fn record_success(&self, client: &LoginScopes) -> KvResult<()> {
        let call = Call::with_keys(&scripts::LOGIN_SUCCESS, login_keys(client));
        call.arg(KNOWN_LOGIN_S).run(&self.pool)?.count().map(drop)
    }
}

fn login_keys(client: &LoginScopes) -> impl Iterator<Item = String> {
    let known = keys::known_login(&client.address.name);
    std::iter::once(known).chain(client.iter().map(|scope| keys::login(&scope.name)))
}

fn session(reply: OperationReply) -> KvResult<Session> {
    let [created, ends] = reply.parts()?;
    Ok(Session { created_at: created.time()?, ends_at: ends.time()? })
}
