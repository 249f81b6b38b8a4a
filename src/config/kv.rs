//! The key-value store.

use std::path::PathBuf;

use url::Url;

use super::env::{Expected, Var, VariableReader};
use super::secret::Secret;
use super::sentinel::{SENTINEL_URL_FORM, SentinelUrl};
use super::values::absolute_path;

/// `KV_URL`, required. May come from a file, since it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvConfig {
    Redis(RedisConfig),
    /// `sqlite:///…`: a file of this machine.
    Sqlite(PathBuf),
}

/// A Redis server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisConfig {
    /// `redis://…`, `rediss://…` or the same with `+sentinel`, the whole URL.
    pub url: Secret,
    /// Sent to servers that require client certificates, in addition to the password; with TLS only.
    pub certificate: Option<ClientCertificate>,
}

/// PEM files of a client's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// `KV_CLIENT_CERT_FILE`: the certificate, and those of the authorities between it and the server's.
    pub chain: PathBuf,
    /// `KV_CLIENT_KEY_FILE`: its private key.
    pub key: PathBuf,
}

impl Default for KvConfig {
    fn default() -> Self {
        Self::Redis(RedisConfig::default())
    }
}

const CLIENT_CHAIN: Var = Var("KV_CLIENT_CERT_FILE", "client certificate for Redis, PEM");
const CLIENT_KEY: Var = Var("KV_CLIENT_KEY_FILE", "key of the client certificate for Redis, PEM");

impl KvConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        let kv = reader.required_secret(Var("KV_URL", "URL of the key-value store"), parse);
        let chain = reader.optional(CLIENT_CHAIN, absolute_path);
        let key = reader.optional(CLIENT_KEY, absolute_path);
        let path = |file: &PathBuf| file.display().to_string();
        let certificate = match (chain, key) {
            (None, None) => return kv,
            (Some(chain), Some(key)) => ClientCertificate { chain, key },
            (Some(chain), None) => {
                reader.malformed(CLIENT_CHAIN, &path(&chain), "KV_CLIENT_KEY_FILE, too");
                return kv;
            }
            (None, Some(key)) => {
                reader.malformed(CLIENT_KEY, &path(&key), "KV_CLIENT_CERT_FILE, too");
                return kv;
            }
        };
        match kv {
            Self::Redis(redis) if redis.url.reveal().starts_with("rediss") => {
                Self::Redis(RedisConfig { certificate: Some(certificate), ..redis })
            }
            // A missing URL is reported by itself.
            Self::Redis(redis) if redis.url.reveal().is_empty() => Self::Redis(redis),
            other => {
                let expected = "none, since KV_URL is not `rediss://…` or `rediss+sentinel://…`";
                reader.malformed(CLIENT_CHAIN, &path(&certificate.chain), expected);
                other
            }
        }
    }
}

fn parse(text: &str) -> Result<KvConfig, Expected> {
    let expected = || {
        format!(
            "`redis://[user][:password@]host[:port][/db]`, `rediss://…`, {SENTINEL_URL_FORM} or `sqlite:///…` with an absolute path"
        )
    };
    if let Some(path) = text.strip_prefix("sqlite://") {
        return absolute_path(path).map(KvConfig::Sqlite).map_err(|_| expected());
    }
    if !is_redis(text) {
        return Err(expected());
    }
    Ok(KvConfig::Redis(RedisConfig { url: Secret::new(text), certificate: None }))
}

fn is_redis(text: &str) -> bool {
    if SentinelUrl::is_one(text) {
        return SentinelUrl::parse(text).is_some();
    }
    let Ok(url) = Url::parse(text) else { return false };
    let database = url.path().trim_start_matches('/');
    matches!(url.scheme(), "redis" | "rediss")
        && url.host_str().is_some_and(|host| !host.is_empty())
        && (database.is_empty() || database.parse::<u32>().is_ok())
}
