//! The key-value store.

use std::path::PathBuf;

use super::env::{Expected, Reader, Var};
use super::secret::Secret;
use super::values::absolute_path;

/// `KV_URL`, required; may come from a file, since it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvConfig {
    /// `redis://…` or `rediss://…`, the whole URL.
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
    pub(super) fn read(reader: &Reader<'_>) -> Self {
        reader.required_secret(Var("KV_URL", "where the key-value store is"), parse)
    }
}

fn parse(text: &str) -> Result<KvConfig, Expected> {
    let expected = || "`redis://…`, `rediss://…` or `sqlite:///…` with an absolute path".to_owned();
    if let Some(path) = text.strip_prefix("sqlite://") {
        return absolute_path(path).map(KvConfig::Sqlite).map_err(|_| expected());
    }
    let host = text.strip_prefix("redis://").or_else(|| text.strip_prefix("rediss://"));
    host.filter(|host| !host.is_empty()).map(|_| KvConfig::Redis(Secret::new(text))).ok_or_else(expected)
}
