//! Where the server is: at a fixed address, or where Sentinels say that the primary is.

use std::time::Duration;

use ::redis::{Client, Connection, ErrorKind, RedisError};

use super::options::OpenError;
use super::tls::{self, Trust};
use crate::config::{Secret, SentinelUrl};

/// How to reach the server.
pub(super) enum RedisServer {
    Fixed(Box<Client>),
    Sentinels(Sentinels),
}

/// A service that Sentinels watch. Its primary may move, so it is looked up for each connection.
pub(super) struct Sentinels {
    url: SentinelUrl,
    clients: Vec<Client>,
    trust: Trust,
}

impl RedisServer {
    /// Doesn't connect yet.
    pub(super) fn open(url: &str, trust: Trust) -> Result<Self, OpenError> {
        if !SentinelUrl::is_one(url) {
            return Ok(Self::Fixed(Box::new(tls::client(url, &trust)?)));
        }
        let malformed = || OpenError::Url { reason: "the list of Sentinels can't be read".into() };
        let url = SentinelUrl::parse(url).ok_or_else(malformed)?;
        let client = |sentinel: &Secret| tls::client(sentinel.reveal(), &trust);
        let clients = url.sentinels.iter().map(client).collect::<Result<_, _>>()?;
        Ok(Self::Sentinels(Sentinels { url, clients, trust }))
    }

    /// For messages.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Fixed(client) => client.get_connection_info().addr().to_string(),
            Self::Sentinels(sentinels) => sentinels.describe(),
        }
    }

    /// Whether another server may take this one's place.
    pub(super) fn may_move(&self) -> bool {
        matches!(self, Self::Sentinels(_))
    }

    /// `timeout`: of each connection, and of each reply.
    pub(super) fn connect(&self, timeout: Duration, reply: Duration) -> Result<Connection, RedisError> {
        match self {
            Self::Fixed(client) => client.get_connection_with_timeout(timeout),
            Self::Sentinels(sentinels) => sentinels.connect(timeout, reply),
        }
    }
}

impl Sentinels {
    fn describe(&self) -> String {
        let addresses = self.clients.iter().map(|client| client.get_connection_info().addr().to_string());
        format!("service `{}` of the Sentinels {}", self.url.service, addresses.collect::<Vec<_>>().join(", "))
    }

    /// Asks each Sentinel in turn until one names a server that is the primary: one that was cut off may name the old one.
    fn connect(&self, timeout: Duration, reply: Duration) -> Result<Connection, RedisError> {
        let mut failed = None;
        for sentinel in &self.clients {
            match self.primary(sentinel, timeout, reply) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = Some(error),
            }
        }
        // The URL names at least one.
        Err(failed.unwrap_or_else(|| RedisError::from((ErrorKind::Io, "there is no Sentinel"))))
    }

    fn primary(&self, sentinel: &Client, timeout: Duration, reply: Duration) -> Result<Connection, RedisError> {
        let away = |text: String| std::io::Error::new(std::io::ErrorKind::NotConnected, text);
        let mut asked = sentinel.get_connection_with_timeout(timeout)?;
        asked.set_read_timeout(Some(reply))?;
        let mut lookup = ::redis::cmd("SENTINEL");
        lookup.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.url.service);
        let found: Option<(String, u16)> = lookup.query(&mut asked)?;
        let from = sentinel.get_connection_info().addr();
        let (host, port) =
            found.ok_or_else(|| away(format!("the Sentinel {from} knows no service `{}`", self.url.service)))?;
        let url = self.url.server_at(&host, port);
        let url = url.ok_or_else(|| away(format!("the Sentinel {from} names an address that can't be used")))?;
        let client = tls::client(url.reveal(), &self.trust).map_err(|error| away(error.to_string()))?;
        let mut connection = client.get_connection_with_timeout(timeout)?;
        connection.set_read_timeout(Some(reply))?;
        // The first part of the reply; the others depend on it.
        let role: Vec<::redis::Value> = ::redis::cmd("ROLE").query(&mut connection)?;
        let role = role.first().map(::redis::from_redis_value_ref::<String>).transpose()?;
        if role.as_deref() != Some("master") {
            return Err(away(format!("{host}:{port}, which the Sentinel {from} names, is not the primary")).into());
        }
        Ok(connection)
    }
}
