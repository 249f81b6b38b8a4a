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
    /// `redis://…`, `rediss://…` or the same with `+sentinel`, the whole URL.
    Redis(Secret),
    /// `sqlite:///…`: a file of this machine.
    Sqlite(PathBuf),
}

impl Default for KvConfig {
    fn default() -> Self {
        Self::Redis(Secret::default())
    }
}

impl KvConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        reader.required_secret(Var("KV_URL", "URL of the key-value store"), parse)
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
    if is_redis(text) { Ok(KvConfig::Redis(Secret::new(text))) } else { Err(expected()) }
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
